"""One run of an agent in a scenario, and its result."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
from contextlib import contextmanager, suppress
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingTCPServer
from typing import TYPE_CHECKING, Any, NamedTuple

from agents import KEYS, Turn
from scenarios import PROTOCOLS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agents import Agent
    from scenarios import File, Scenario

# The beginning of the text in which the simulator quotes results.
QUOTE = "The tool said: "
# The number of thoughts in the last request, in the last text of a model that thinks.
THOUGHTS = re.compile(r"Thoughts that came back: (\d+)\.")
# The prompt of a turn without files.
GO_ON = "Go on."
# The time for one turn, in seconds.
LIMIT = 120
VERSION = re.compile(r"(?<!\S)v*[0-9]\S*")
# The host in the first line of a request to a proxy.
HOST = re.compile(r"\S+ (?:\w+://)?([^/:\s]+)")


class TrialError(Exception):
    """A run that did not pass."""


class Passed(NamedTuple):
    """The result of a run that passed."""

    requests: int
    # The number of thoughts that came back, if the model thinks.
    thoughts: int | None


class Trial(NamedTuple):
    """The runs of an agent."""

    agent: Agent
    # The search path with the programs of the agents.
    path: str
    # The folder for its home and its output.
    folder: Path
    # The program of the gateway, and the address of the simulator.
    program: str
    simulator: str
    proxy: Proxy

    def version(self) -> str:
        """The version that the agent reports."""
        self._empty_home()
        command, env = [self.agent.program, "--version"], self._environment()
        output = subprocess.run(command, env=env, capture_output=True, check=True, text=True).stdout
        if found := VERSION.search(output):
            return found[0]
        raise RuntimeError(f"no version in {output!r}")

    def run(self, scenario: Scenario, upstreams: tuple[str, ...]) -> Passed | str:
        """Runs the agent through a gateway of its own. Returns the result, or a description of the failure."""
        name = f"{self.agent.name}-{scenario.name}-over-{'-'.join(upstreams)}"
        output, log = self.folder / f"{name}.log", self.folder / f"{name}.gateway.log"
        self._empty_home()
        with tempfile.TemporaryDirectory(prefix="sluicegate-") as folder:
            work = Path(folder)
            config = work.with_suffix(".toml")
            config.write_text(configuration(self.simulator, self.agent, scenario, upstreams), encoding="utf-8")
            try:
                with self._gateway(config, log) as gateway:
                    self._finish(gateway, scenario, work, output)
                written([file for turn in scenario.turns for file in turn], work)
                found(self.agent, scenario, self._home)
                thoughts = said(self.agent, scenario, _text(output))
                return Passed(requests(self.agent, scenario, upstreams, _text(log)), thoughts)
            except TrialError as failure:
                return f"{failure}; see {output.name}"
            finally:
                config.unlink()

    @contextmanager
    def _gateway(self, config: Path, log: Path) -> Iterator[str]:
        listen = ["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]
        env = {name: value for name, value in os.environ.items() if name != "SLUICEGATE_LOG"} | KEYS
        with log.open("wb") as errors:
            command = [self.program, "serve", *listen, "--config", str(config)]
            with server(command, env=env, stderr=errors) as address:
                yield address

    def _finish(self, gateway: str, scenario: Scenario, work: Path, output: Path) -> None:
        """Runs the turns of the agent. Each has to end with success, or as the agent does after an overflow."""
        for file in (file for files in scenario.turns for file in files if file.old):
            (work / file.name).write_text("".join(f"{line}\n" for line in file.old), encoding="utf-8")
        prompts = ["\n".join(line for file in files for line in file.sentences(work)) for files in scenario.turns]
        prompts += [GO_ON] * (scenario.overflows and self.agent.compacts_later)
        output.write_bytes(b"")
        for index, prompt in enumerate(prompts):
            # Targets of one model are not models of their own.
            model = self.agent.models[index if len(scenario.turns) > 1 else 0]
            status = self._turn(Turn(gateway, model, prompt, self._home, index > 0), work, output)
            if status != (self.agent.overflow_status if scenario.overflows and index == 0 else 0):
                raise TrialError(f"exit status: {status}" if status >= 0 else f"signal: {-status}")

    def _turn(self, turn: Turn, work: Path, output: Path) -> int:
        args, settings = self.agent.start(turn)
        env = self._environment() | settings
        with output.open("ab") as file:
            options = {"cwd": work, "env": env, "stdin": subprocess.DEVNULL, "stdout": file, "stderr": file}
            status = bounded([self.agent.program, *args], LIMIT, **options)
        if status is None:
            raise TrialError(f"stopped after {LIMIT} seconds")
        return status

    @property
    def _home(self) -> Path:
        return self.folder / "homes" / self.agent.name

    def _empty_home(self) -> None:
        if self._home.exists():
            shutil.rmtree(self._home)
        self._home.mkdir(parents=True)

    def _environment(self) -> dict[str, str]:
        """An environment with little but the home and the proxy."""
        proxies = dict.fromkeys(["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"], self.proxy.url)
        direct = {"NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
        return {"HOME": str(self._home), "PATH": self.path} | proxies | direct


def configuration(simulator: str, agent: Agent, scenario: Scenario, upstreams: tuple[str, ...]) -> str:
    """The configuration of a gateway in front of the simulator with this base URL."""
    lines = []
    for name in upstreams:
        protocol, path, preset = name, "/v1", []
        if name not in PROTOCOLS:
            protocol, path = "chat", f"/{name}/v1"
            preset = [f'preset = "{name}"', 'api_key = { env = "SLUICEGATE_TEXT_KEY" }']
        lines += ["[[upstreams]]", f'name = "{name}"', f'protocol = "{protocol}"', *preset]
        lines += [f'base_url = "{simulator.removesuffix("/v1")}{path}"']
    places = zip(upstreams, scenario.models, strict=True)
    targets = [f'{{ upstream = "{upstream}", model = "{model}" }}' for upstream, model in places]
    groups = [", ".join(targets)] if scenario.is_failover else targets
    for model, group in zip(agent.models, groups, strict=False):
        lines += ["[[models]]", f'id = "{model}"', 'family = "text"']
        lines += ['protocols = ["responses", "chat", "messages"]', f"targets = [{group}]"]
    return "\n".join(lines)


@contextmanager
def server(command: list[str], **options: Any) -> Iterator[str]:
    """Runs the gateway or the simulator. Yields the address that it prints once it listens."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **options) as child:
        try:
            lines = (line.strip().partition(" listens on ") for line in child.stdout or [])
            address = next((address for _, _, address in lines if address), None)
            if address is None:
                raise RuntimeError(f"{command[0]} did not start")
            yield address
        finally:
            child.kill()


def bounded(command: list[str], limit: float, **options: Any) -> int | None:
    """Runs a command. After `limit` seconds it is killed with all that it has started; then it has no status."""
    with subprocess.Popen(command, process_group=0, **options) as child:
        try:
            return child.wait(limit)
        except subprocess.TimeoutExpired:
            return None
        finally:
            if child.returncode is None:
                os.killpg(child.pid, signal.SIGKILL)


def written(files: list[File], work: Path) -> None:
    """Fails if a file is absent or has another text."""
    for file in files:
        try:
            text = (work / file.name).read_bytes()
        except OSError as error:
            raise TrialError(f"{file.name}: {error.strerror}") from error
        # Some patches leave the last line without its end.
        if text.removesuffix(b"\n") != "\n".join(file.lines).encode():
            raise TrialError(f"{file.name} contains {text.decode(errors='replace')!r}")


def found(agent: Agent, scenario: Scenario, home: Path) -> None:
    """Fails if an agent that asks for the gateway's list of models has not kept the models of the scenario."""
    if agent.found_models is None:
        return
    try:
        models = json.loads((home / agent.found_models).read_bytes())["models"]
    except OSError as error:
        raise TrialError(f"{agent.found_models}: {error.strerror}") from error
    ids = sorted(model["id"] for model in models)
    if ids != sorted(agent.models[: len(scenario.turns)]):
        raise TrialError(f"the agent found the models {ids}")


def said(agent: Agent, scenario: Scenario, output: str) -> int | None:
    """Fails if an agent with tools has not printed the model's last text, which quotes the results of the calls.

    Returns the number of thoughts that came back, if the model thinks.
    """
    if not agent.calls_tools:
        return None
    _, quote, results = output.rpartition(QUOTE)
    if not quote or not (scenario.thinks or "; " in results):
        raise TrialError("the results of the tools did not come back")
    found = THOUGHTS.search(results)
    if scenario.thinks and not found:
        raise TrialError("the last text is incomplete")
    return int(found[1]) if found else None


def requests(agent: Agent, scenario: Scenario, upstreams: tuple[str, ...], log: str) -> int:
    """Counts the requests in the gateway's log. All have to be completed by the agent's route, by every upstream.

    If the history becomes too long, there also have to be refused ones.
    """
    entries = []
    for line in log.split("\n"):
        # The text of a panic is not JSON.
        with suppress(ValueError):
            entries.append(json.loads(line))
    entries = [entry for entry in entries if isinstance(entry, dict)]
    if any(entry.get("route") == "websocket" for entry in entries) != agent.over_websocket:
        raise TrialError("a WebSocket was opened" if not agent.over_websocket else "no WebSocket was opened")
    entries = [entry for entry in entries if entry.get("model") in agent.models]
    refused = [entry for entry in entries if scenario.overflows and entry.get("status") == 400]
    for entry in entries:
        if entry not in refused and (entry.get("outcome") != "completed" or entry.get("route") != agent.route):
            raise TrialError(f"{entry.get('status')} {entry.get('outcome')} by {entry.get('route')}")
    if scenario.overflows and not refused:
        raise TrialError("no request was too long")
    if unused := set(upstreams) - {entry.get("target") for entry in entries}:
        raise TrialError(f"no request to {', '.join(sorted(unused))}")
    if len(entries) < (2 if agent.calls_tools else 1):
        raise TrialError(f"{len(entries)} requests")
    return len(entries)


def _text(path: Path) -> str:
    return path.read_bytes().decode(errors="replace")


class Proxy(ThreadingTCPServer):
    """A proxy that refuses every request and records its host, so that agents reach nothing but the gateway."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Refusal)
        self.hosts: set[str] = set()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Refusal(StreamRequestHandler):
    """Answers the first request of a connection with 403."""

    server: Proxy

    def handle(self) -> None:
        with suppress(ConnectionError):
            first = self.rfile.readline().decode(errors="replace")
            # A client that disconnects before the empty line has asked for nothing.
            if any(line in (b"\r\n", b"\n") for line in self.rfile) and (found := HOST.match(first)):
                self.server.hosts.add(found[1])
                self.wfile.write(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
