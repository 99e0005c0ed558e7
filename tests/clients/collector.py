"""A collector of OpenTelemetry: it reads exports with the messages that OpenTelemetry publishes for Python."""

from __future__ import annotations

import queue
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opentelemetry.proto.metrics.v1.metrics_pb2 import ResourceMetrics
    from opentelemetry.proto.resource.v1.resource_pb2 import Resource
    from opentelemetry.proto.trace.v1.trace_pb2 import Span


@dataclass(frozen=True)
class Collector:
    """A running collector, and the spans and metrics that it has received."""

    url: str
    received: queue.SimpleQueue[tuple[Resource, Span]] = field(default_factory=queue.SimpleQueue)
    exports: queue.SimpleQueue[ResourceMetrics] = field(default_factory=queue.SimpleQueue)

    def spans(self, count: int) -> list[tuple[Resource, Span]]:
        """So many spans, in the order in which they arrive; the time-out is a guard against hanging."""
        return [self.received.get(timeout=60) for _ in range(count)]

    def metrics(self) -> ResourceMetrics:
        """The next export of metrics."""
        return self.exports.get(timeout=60)

    def take(self, path: str, body: bytes) -> bytes | None:
        """Notes an export, and returns the body of the response; None if OTLP has no such path."""
        match path:
            case "/v1/traces":
                for group in ExportTraceServiceRequest.FromString(body).resource_spans:
                    for scope in group.scope_spans:
                        for span in scope.spans:
                            self.received.put((group.resource, span))
                return ExportTraceServiceResponse().SerializeToString()
            case "/v1/metrics":
                for group in ExportMetricsServiceRequest.FromString(body).resource_metrics:
                    self.exports.put(group)
                return ExportMetricsServiceResponse().SerializeToString()
            case _:
                return None


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
        answer = self.server.collector.take(self.path, body)
        if answer is None or self.headers["content-type"] != "application/x-protobuf":
            self.send_error(400)
            return
        self.send_response(200)
        self.send_header("content-type", "application/x-protobuf")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        """The output of the tests is not for requests."""
