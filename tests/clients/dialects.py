"""The cases of `tests/dialects`, and a server that sends them.

A case is what a real server sends, byte for byte, and what a client of the gateway is owed for it: see
`docs/dialects.md`. The Rust tests read every one of them; here are those whose answer is not a failure.
"""

from __future__ import annotations

import json
import tomllib
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

TEXT = ["responses", "chat", "messages"]


@dataclass(frozen=True)
class Case:
    """A case by its name, such as `azure-openai/first-chunk-empty`, and its file."""

    name: str
    path: Path
    file: dict[str, Any]

    @property
    def model(self) -> str:
        """The name as that of a model, which has no slash."""
        return self.name.replace("/", ".")

    @property
    def protocol(self) -> str:
        """The protocol of the server."""
        return self.file["protocol"]

    @property
    def clients(self) -> list[str]:
        """The protocols of the clients that it is for."""
        return self.file.get("clients", ["images"] if self.protocol == "images" else TEXT)

    @property
    def modes(self) -> list[str]:
        """The modes in which it is requested."""
        return self.file.get("modes", [mode for mode in SUFFIXES if self._body(mode).exists()])

    def body(self, mode: str) -> tuple[bytes, str]:
        """The body of the answer to a request in this mode, and the mode that it has itself."""
        kind = mode if self._body(mode).exists() else next(other for other in SUFFIXES if other != mode)
        return self._body(kind).read_bytes(), kind

    def owed(self, client: str, mode: str) -> dict[str, Any]:
        """What a client of this protocol has to see in this mode."""
        owed = self.file["owed"]
        plain = {key: value for key, value in owed.items() if key == "usage" or not isinstance(value, dict)}
        return plain | owed.get(client, {}) | owed.get(mode, {})

    def _body(self, mode: str) -> Path:
        return self.path.with_suffix(SUFFIXES[mode])


def cases() -> list[Case]:
    """All cases but those whose ruling is open."""
    paths = sorted(ROOT.glob("*/*.toml"))
    read = [Case(f"{path.parent.name}/{path.stem}", path, tomllib.loads(path.read_text("utf-8"))) for path in paths]
    return [case for case in read if "level" not in case.file]


@contextmanager
def playing() -> Iterator[str]:
    """Serves the cases on a port that the system chooses, each below its name, and gives the address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Player) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


class _Player(BaseHTTPRequestHandler):
    """Sends the bytes of a case, whatever it is asked, and closes the connection."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        case = BY_NAME[self.path.removeprefix("/").partition("/v1/")[0]]
        body, kind = case.body("stream" if asked.get("stream") is True else "plain")
        wire = case.file.get("wire", {})
        self.send_response_only(wire.get("status", 200))
        self.send_header("content-type", wire.get("content_type", CONTENT_TYPES[kind]))
        for name, value in wire.get("headers", []):
            self.send_header(name, value)
        match wire.get("ends", ENDS[kind]):
            case "chunked":
                self.send_header("transfer-encoding", "chunked")
                body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
            case "length":
                self.send_header("content-length", str(len(body)))
            case ends:
                assert ends == "close", f"{case.name}: an answer that ends as {ends} is a failure"
        self.send_header("connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing is logged."""


ROOT = Path(__file__).parents[1] / "dialects/cases"
SUFFIXES = {"stream": ".sse", "plain": ".json"}
CONTENT_TYPES = {"stream": "text/event-stream", "plain": "application/json"}
ENDS = {"stream": "chunked", "plain": "length"}
BY_NAME = {case.name: case for case in cases()}
