"""A collector of OpenTelemetry: it reads exports with the messages that OpenTelemetry publishes for Python."""

from __future__ import annotations

import queue
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opentelemetry.proto.resource.v1.resource_pb2 import Resource
    from opentelemetry.proto.trace.v1.trace_pb2 import Span


@dataclass(frozen=True)
class Collector:
    """A running collector, and the spans that it has received."""

    url: str
    received: queue.SimpleQueue[tuple[Resource, Span]] = field(default_factory=queue.SimpleQueue)

    def spans(self, count: int) -> list[tuple[Resource, Span]]:
        """So many spans, in the order in which they arrive; the time-out is a guard against hanging."""
        return [self.received.get(timeout=60) for _ in range(count)]


@contextmanager
def collecting() -> Iterator[Collector]:
    """Runs a collector on a port that the system chooses."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        collector = Collector(f"http://127.0.0.1:{server.server_port}")
        server.collector = collector
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield collector
        finally:
            server.shutdown()


class Handler(BaseHTTPRequestHandler):
    """Answers exports as the specification of OTLP/HTTP asks."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        if (self.path, self.headers["content-type"]) != ("/v1/traces", "application/x-protobuf"):
            self.send_error(400)
            return
        export = ExportTraceServiceRequest.FromString(body)
        for group in export.resource_spans:
            for scope in group.scope_spans:
                for span in scope.spans:
                    self.server.collector.received.put((group.resource, span))
        answer = ExportTraceServiceResponse().SerializeToString()
        self.send_response(200)
        self.send_header("content-type", "application/x-protobuf")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        """The output of the tests is not for requests."""
