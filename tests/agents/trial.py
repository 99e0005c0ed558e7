"""One run of an agent with one upstream, and its result."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingTCPServer
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from agents import Agent

# The files to write, each with its line.
FILES = {"hello.txt": "The gateway was here.", "again.txt": "And it's still here."}
# The beginning of the text in which the simulator quotes results.
QUOTE = "The tool said: "
# The time for one run, in seconds.
LIMIT = 120
VERSION = re.compile(r"(?<!\S)v*[0-9]\S*")
# The host in the first line of a request to a proxy.
HOST = re.compile(r"\S+ (?:\w+://)?([^/:\s]+)")


class TrialError(Exception):
    """A run that did not pass."""


class Trial(NamedTuple):
    """The runs of an agent."""

    agent: Agent
    # The search path with the programs of the agents.
    path: str
    # The folder for its home and its output.
    folder: Path
    gateway: str
    # The log of the gateway.
    log: Path
    proxy: Proxy

    def version(self) -> str:
        """The version that the agent reports."""
        command, env = [self.agent.program, "--version"], self._environment()
        output = subprocess.run(command, env=env, capture_output=True, check=True, text=True).stdout
        if found := VERSION.search(output):
            return found[0]
        raise RuntimeError(f"no version in {output!r}")

    def run(self, model: str) -> int | str:
        """Runs the agent. Returns the number of its requests, or a description of the failure."""
        output = self.folder / f"{model}.log"
        with tempfile.TemporaryDirectory(prefix="sluicegate-") as name:
            work = Path(name)
            try:
                self._finish(model, work, output)
                written(work)
                quoted(self.agent, _text(output))
                return requests(self.agent, _text(self.log), model)
            except TrialError as failure:
                return f"{failure}; see {output.name}"

    def _finish(self, model: str, work: Path, output: Path) -> None:
        """Runs the agent to its end, which has to be a success."""
        prompt = "\n".join(f"Create the file {work / name} with the line: {line}" for name, line in FILES.items())
        args, settings = self.agent.start(self.gateway, model, prompt)
        env = self._environment() | settings
        with output.open("wb") as file:
            options = {"cwd": work, "env": env, "stdin": subprocess.DEVNULL, "stdout": file, "stderr": file}
            status = bounded([self.agent.program, *args], LIMIT, **options)
        if status is None:
            raise TrialError(f"stopped after {LIMIT} seconds")
        if status != 0:
            raise TrialError(f"exit status: {status}" if status > 0 else f"signal: {-status}")

    def _environment(self) -> dict[str, str]:
        """An environment with little but an empty home and the proxy."""
        home = self.folder / "home"
        if home.exists():
            shutil.rmtree(home)
        home.mkdir()
        proxies = dict.fromkeys(["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"], self.proxy.url)
        direct = {"NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
        return {"HOME": str(home), "PATH": self.path} | proxies | direct


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


def written(work: Path) -> None:
    """Fails if a file is absent or has another text."""
    for name, line in FILES.items():
        try:
            text = (work / name).read_bytes()
        except OSError as error:
            raise TrialError(f"{name}: {error.strerror}") from error
        if text != f"{line}\n".encode():
            raise TrialError(f"{name} contains {text.decode(errors='replace')!r}")


def quoted(agent: Agent, output: str) -> None:
    """Fails if an agent with tools has not printed the model's last text, which quotes the results of both calls."""
    _, quote, results = output.rpartition(QUOTE)
    if agent.calls_tools and not (quote and "; " in results):
        raise TrialError("the results of the tools did not come back")


def requests(agent: Agent, log: str, model: str) -> int:
    """Counts the requests for `model` in the gateway's log. All have to be completed, on the agent's route."""
    entries = []
    for line in log.split("\n"):
        # The text of a panic is not JSON.
        with suppress(ValueError):
            entries.append(json.loads(line))
    entries = [entry for entry in entries if isinstance(entry, dict) and entry.get("model") == model]
    for entry in entries:
        if entry.get("outcome") != "completed" or entry.get("route") != agent.route:
            raise TrialError(f"{entry.get('status')} {entry.get('outcome')} by {entry.get('route')}")
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
