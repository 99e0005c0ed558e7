"""Runs coding agents through the gateway: `python3 tests/agents/run.py [--write] [--scenario NAME] [NAME…]`.

The models for coding agents of the simulator are behind upstreams of several protocols and dialects. Each agent runs
headless in every scenario, in a folder of its own, and has to write or edit files with the tools that the model calls.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from agents import AGENTS, Agent
from scenarios import SCENARIOS, UPSTREAMS, Scenario
from trial import Passed, Proxy, Trial, server

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
# The number of agents that run at once.
JOBS = 4


class Row(NamedTuple):
    """The results of an agent."""

    agent: Agent
    version: str
    # By scenario, one for each of its upstreams, or the reason why it is not run.
    results: dict[str, list[Passed | str] | str]
    # The hosts beside the gateway that it asked for.
    hosts: list[str]


def main() -> None:
    parser = argparse.ArgumentParser(description="Runs coding agents through the gateway.")
    parser.add_argument("--write", action="store_true", help="write the tables to docs/agents.md")
    parser.add_argument("--scenario", action="append", choices=[scenario.name for scenario in SCENARIOS])
    parser.add_argument("names", nargs="*", metavar="NAME", help="run the agents whose name contains a NAME (all)")
    args = parser.parse_args()
    if args.write and (args.names or args.scenario):
        parser.error("--write needs the results of all agents in all scenarios, so it takes no names")
    chosen = [agent for agent in AGENTS if not args.names or any(name in agent.name for name in args.names)]
    if not chosen:
        parser.error(f"no agent has such a name: {args.names}")
    scenarios = [scenario for scenario in SCENARIOS if not args.scenario or scenario.name in args.scenario]
    rows = run(chosen, scenarios)
    print(f"\n{tables(rows, scenarios)}")
    if args.write:
        write(tables(rows, scenarios))
    if failed := failures(rows, scenarios):
        sys.exit("agents failed:\n  " + "\n  ".join(failed))


def run(agents: list[Agent], scenarios: list[Scenario]) -> list[Row]:
    """Builds the gateway, installs the agents, and runs them in the scenarios."""
    target = build()
    folder = target / "agents"
    path = install(folder)
    with server([f"{target}/debug/sluicegate-simulator", "--listen", "127.0.0.1:0"]) as simulator:
        program = f"{target}/debug/sluicegate"
        trials = [Trial(agent, path, folder, program, simulator, Proxy()) for agent in agents]
        # They mostly wait.
        with ThreadPoolExecutor(JOBS) as pool:
            return list(pool.map(lambda trial: run_agent(trial, scenarios), trials))


def run_agent(trial: Trial, scenarios: list[Scenario]) -> Row:
    """Runs an agent in the scenarios, with all their upstreams."""
    version, lacks = trial.version(), dict(trial.agent.lacks)
    results: dict[str, list[Passed | str] | str] = {}
    for scenario in scenarios:
        if scenario.name in lacks:
            results[scenario.name] = lacks[scenario.name]
            continue
        done: list[Passed | str] = []
        for upstreams in scenario.upstreams:
            result = trial.run(scenario, upstreams)
            done.append(result)
            print(f"{trial.agent.name} {scenario.name} over {' and '.join(upstreams)}: {cell(result)}", flush=True)
        results[scenario.name] = done
    return Row(trial.agent, version, results, sorted(trial.proxy.hosts))


def build() -> Path:
    """Builds the gateway without its engines, and the simulator. Returns the folder into which cargo builds."""
    command = ["cargo", "build", "--locked", "--quiet", "--no-default-features", "--bins"]
    command += ["--package=sluicegate-server", "--package=sluicegate-simulator"]
    subprocess.run(command, cwd=ROOT, check=True)
    command = ["cargo", "metadata", "--no-deps", "--format-version=1"]
    metadata = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout
    return Path(json.loads(metadata)["target_directory"])


def install(folder: Path) -> str:
    """Installs the pinned agents, unless they are there. Returns a search path that begins with their programs."""
    node, python = folder / "node", folder / "python"
    # Each is complete when it has a copy of the file that pins its packages.
    lock, requirements = HERE / "package-lock.json", HERE / "requirements.txt"
    if not is_copy(node / "complete", lock):
        print(f"installing agents in {folder}; they are about 2 GB", flush=True)
        node.mkdir(parents=True, exist_ok=True)
        for file in [HERE / "package.json", lock]:
            shutil.copy(file, node)
        # Not `ci`, which refuses a lock file without the programs of other platforms.
        subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--loglevel=error"], cwd=node, check=True)
        shutil.copyfile(lock, node / "complete")
    # The interpreter of an environment may have been removed.
    if not (python / "bin/python").exists() or not is_copy(python / "complete", requirements):
        subprocess.run([sys.executable, "-m", "venv", "--clear", python], check=True)
        pip = [f"{python}/bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"]
        subprocess.run([*pip, "-r", str(requirements)], check=True)
        shutil.copyfile(requirements, python / "complete")
    return os.pathsep.join([str(node / "node_modules/.bin"), str(python / "bin"), os.environ["PATH"]])


def is_copy(copy: Path, file: Path) -> bool:
    return copy.exists() and copy.read_bytes() == file.read_bytes()


def cell(result: Passed | str) -> str:
    """A result as it appears in the table."""
    if isinstance(result, str):
        return f"FAILED: {result}"
    counts = [(result.requests, "request"), (result.thoughts, "thought")]
    known = [f"{count} {noun}{'s' * (count != 1)}" for count, noun in counts if count is not None]
    return ", ".join(["passed", *known])


def tables(rows: list[Row], scenarios: list[Scenario]) -> str:
    """A table of the agents, and a section for each scenario."""
    # The page never names a registry of packages.
    named = [["a registry of packages" if host.startswith("registry.") else host for host in row.hosts] for row in rows]
    names = [", ".join(dict.fromkeys(hosts)) or "none" for hosts in named]
    agents = [[row.agent.title, row.version, row.agent.protocol, hosts] for row, hosts in zip(rows, names, strict=True)]
    sections = [table(["agent", "version", "uses", "other hosts"], agents)]
    for scenario in scenarios:
        columns = [" to ".join(UPSTREAMS[name] for name in upstreams) for upstreams in scenario.upstreams]
        lines = [
            [row.agent.title, row.agent.protocol, *map(cell, results)]
            for row in rows
            if not isinstance(results := row.results[scenario.name], str)
        ]
        reasons = [
            f"{row.agent.title}: {results}" for row in rows if isinstance(results := row.results[scenario.name], str)
        ]
        section = f"### {scenario.title}\n\n{scenario.about}\n\n{table(['agent', 'uses', *columns], lines)}"
        sections.append(section + (f"\nNot run: {'; '.join(dict.fromkeys(reasons))}.\n" if reasons else ""))
    return "\n".join(sections)


def table(titles: list[str], rows: list[list[str]]) -> str:
    return "".join([line(titles), f"|{'---|' * len(titles)}\n", *map(line, rows)])


def line(cells: list[str]) -> str:
    escaped = [cell.strip().replace("|", "\\|").replace("\n", " ") for cell in cells]
    return f"| {' | '.join(escaped)} |\n"


def failures(rows: list[Row], scenarios: list[Scenario]) -> list[str]:
    """The runs that failed, each in a sentence."""
    failed = []
    for row in rows:
        for scenario in scenarios:
            results = row.results[scenario.name]
            pairs = [] if isinstance(results, str) else zip(scenario.upstreams, results, strict=True)
            failed += [
                f"{row.agent.name} {scenario.name} over {' and '.join(upstreams)}: {result}"
                for upstreams, result in pairs
                if isinstance(result, str)
            ]
    return failed


def write(tables: str) -> None:
    """Writes the tables to docs/agents.md, between its markers."""
    page = ROOT / "docs/agents.md"
    before, rest = page.read_text(encoding="utf-8").split("<!-- results -->\n")
    after = rest.split("<!-- end -->\n")[1]
    page.write_text(f"{before}<!-- results -->\n{tables}<!-- end -->\n{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
