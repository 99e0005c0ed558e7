"""Runs coding agents through the gateway: `python3 tests/agents/run.py [--write] [NAME…]`.

The model `coding-agent` of the simulator is behind upstreams of several protocols and dialects. Each agent runs
headless with each upstream, in a folder of its own, and has to write two files with the tools that the model calls.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from agents import AGENTS, KEYS, Agent
from trial import Proxy, Trial

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
# The upstreams, each with its column of the table. One that is not named after its protocol is a vendor with Chat
# Completions, which the gateway reaches with the preset of that name.
PROTOCOLS = {"responses": "Responses", "messages": "Messages", "chat": "Chat"}
UPSTREAMS = PROTOCOLS | {"azure": "Chat of Azure", "mistral": "Chat of Mistral", "gemini": "Chat of Gemini"}


class Row(NamedTuple):
    """The results of an agent, one for each upstream."""

    agent: Agent
    version: str
    results: list[int | str]
    # The hosts beside the gateway that it asked for.
    hosts: list[str]


def main() -> None:
    parser = argparse.ArgumentParser(description="Runs coding agents through the gateway.")
    parser.add_argument("--write", action="store_true", help="write the table to docs/agents.md")
    parser.add_argument("names", nargs="*", metavar="NAME", help="run the agents whose name contains a NAME (all)")
    args = parser.parse_args()
    if args.write and args.names:
        parser.error("--write needs the results of all agents, so it takes no names")
    chosen = [agent for agent in AGENTS if not args.names or any(name in agent.name for name in args.names)]
    if not chosen:
        parser.error(f"no agent has such a name: {args.names}")
    rows = run(chosen)
    print(f"\n{table(rows)}")
    if args.write:
        write(table(rows))
    if failed := failures(rows):
        sys.exit("agents failed:\n  " + "\n  ".join(failed))


def run(agents: list[Agent]) -> list[Row]:
    """Builds the gateway, installs the agents, and runs them with every upstream."""
    target = build()
    folder = target / "agents"
    path = install(folder)
    config, log = folder / "sluicegate.toml", folder / "gateway.log"
    listen = ["--listen", "127.0.0.1:0"]
    with server([f"{target}/debug/sluicegate-simulator", *listen]) as simulator, log.open("wb") as errors:
        config.write_text(configuration(simulator), encoding="utf-8")
        command = [f"{target}/debug/sluicegate", "serve", *listen, "--admin", "127.0.0.1:0", "--config", str(config)]
        env = {name: value for name, value in os.environ.items() if name != "SLUICEGATE_LOG"} | KEYS
        with server(command, env=env, stderr=errors) as gateway:
            return [run_agent(Trial(agent, path, folder, gateway, log, Proxy())) for agent in agents]


def run_agent(trial: Trial) -> Row:
    """Runs an agent with every upstream."""
    version, results = trial.version(), []
    for upstream in UPSTREAMS:
        results.append(trial.run(model(trial.agent, upstream)))
        print(f"{trial.agent.name} over {upstream}: {cell(results[-1])}", flush=True)
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


def model(agent: Agent, upstream: str) -> str:
    """The model of an agent at an upstream: each pair has its own, by which its requests are found in the log."""
    return f"{agent.name}-over-{upstream}"


def configuration(simulator: str) -> str:
    """The configuration of a gateway in front of the simulator with this base URL."""
    lines = []
    for name in UPSTREAMS:
        protocol, path, preset = name, "/v1", []
        if name not in PROTOCOLS:
            protocol, path = "chat", f"/{name}/v1"
            preset = [f'preset = "{name}"', 'api_key = { env = "SLUICEGATE_TEXT_KEY" }']
        lines += ["[[upstreams]]", f'name = "{name}"', f'protocol = "{protocol}"', *preset]
        lines += [f'base_url = "{simulator.removesuffix("/v1")}{path}"']
        for agent in AGENTS:
            lines += ["[[models]]", f'id = "{model(agent, name)}"', 'family = "text"']
            lines += ['protocols = ["responses", "chat", "messages"]']
            lines += [f'targets = [{{ upstream = "{name}", model = "coding-agent" }}]']
    return "\n".join(lines)


@contextmanager
def server(command: list[str], **options: Any) -> Iterator[str]:
    """Runs the gateway or the simulator. Yields the address that it prints once it listens."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **options) as child:
        try:
            lines = (line.strip().partition(" listens on ") for line in child.stdout or [])
            address = next((address for _, _, address in lines if address), None)
            if address is None:
                raise RuntimeError(f"{command[0]} did not start; the gateway's log is gateway.log")
            yield address
        finally:
            child.kill()


def cell(result: int | str) -> str:
    """A result as it appears in the table."""
    if isinstance(result, str):
        return f"FAILED: {result}"
    return f"passed, {result} request{'s' * (result != 1)}"


def table(rows: list[Row]) -> str:
    """The table of all results."""
    titles = ["agent", "version", "uses", *UPSTREAMS.values(), "other hosts"]
    lines = [line(titles), f"|{'---|' * len(titles)}\n"]
    for agent, version, results, hosts in rows:
        # The page never names a registry of packages.
        names = ["a registry of packages" if host.startswith("registry.") else host for host in hosts]
        lines.append(line([agent.title, version, agent.protocol, *map(cell, results), ", ".join(names) or "none"]))
    return "".join(lines)


def line(cells: list[str]) -> str:
    escaped = [cell.strip().replace("|", "\\|").replace("\n", " ") for cell in cells]
    return f"| {' | '.join(escaped)} |\n"


def failures(rows: list[Row]) -> list[str]:
    """The runs that failed, each in a sentence."""
    results = [(row.agent.name, *each) for row in rows for each in zip(UPSTREAMS, row.results, strict=True)]
    return [f"{name} over {upstream}: {result}" for name, upstream, result in results if isinstance(result, str)]


def write(table: str) -> None:
    """Writes the table to docs/agents.md, between its markers."""
    page = ROOT / "docs/agents.md"
    before, rest = page.read_text(encoding="utf-8").split("<!-- results -->\n")
    after = rest.split("<!-- end -->\n")[1]
    page.write_text(f"{before}<!-- results -->\n{table}<!-- end -->\n{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
