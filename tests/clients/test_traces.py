"""Spans and metrics, as a collector reads them that shares no code with the gateway."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import openai
import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import AGGREGATION_TEMPORALITY_CUMULATIVE
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from collector import Collector, collecting
from gateway import Gateway, running
from simulator import simulating

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from opentelemetry.proto.common.v1.common_pb2 import KeyValue
    from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric, ResourceMetrics

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = "00f067aa0ba902b7"


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Gateway, Collector]]:
    """A gateway that exports its traces to a collector."""
    with collecting() as collector, simulating() as base_url:
        text = config(base_url, collector.url)
        with running(tmp_path_factory.mktemp("traces"), text) as gateway:
            yield gateway, collector


def test_a_stream_of_the_sdk_has_two_spans_with_its_usage(traced: tuple[Gateway, Collector]) -> None:
    gateway, collector = traced
    with gateway.anthropic() as client:
        message = client.messages.create(
            model="mine",
            max_tokens=64,
            messages=[{"role": "user", "content": "Hello."}],
            extra_headers={"traceparent": f"00-{TRACE}-{PARENT}-01"},
        )
    (resource, server), (_, client_span) = collector.spans(2)
    assert values(resource.attributes)["service.name"] == "sluicegate"
    assert server.name == "POST /v1/messages"
    assert server.kind == Span.SPAN_KIND_SERVER
    assert (server.trace_id.hex(), server.parent_span_id.hex()) == (TRACE, PARENT)
    assert server.start_time_unix_nano < server.end_time_unix_nano
    assert server.status.code == Status.STATUS_CODE_UNSET
    attributes = values(server.attributes)
    assert attributes["http.request.method"] == "POST"
    assert attributes["http.route"] == "/v1/messages"
    assert attributes["http.response.status_code"] == 200
    assert (attributes["url.scheme"], attributes["url.path"]) == ("http", "/v1/messages")
    assert attributes["server.address"] == "127.0.0.1"
    assert attributes["sluicegate.outcome"] == "completed"

    assert client_span.name == "chat large"
    assert client_span.kind == Span.SPAN_KIND_CLIENT
    assert client_span.trace_id == server.trace_id
    assert client_span.parent_span_id == server.span_id
    attributes = values(client_span.attributes)
    assert attributes["gen_ai.operation.name"] == "chat"
    assert attributes["gen_ai.provider.name"] == "openai"
    assert attributes["gen_ai.request.model"] == "large"
    assert attributes["gen_ai.usage.input_tokens"] == message.usage.input_tokens
    assert attributes["gen_ai.usage.output_tokens"] == message.usage.output_tokens
    assert attributes["server.address"] == "127.0.0.1"


def test_a_failure_is_an_error_of_both_spans(traced: tuple[Gateway, Collector]) -> None:
    gateway, collector = traced
    with gateway.openai() as client, pytest.raises(openai.InternalServerError):
        client.chat.completions.create(model="broken", messages=[{"role": "user", "content": "Hello."}])
    for _, span in collector.spans(2):
        assert span.status.code == Status.STATUS_CODE_ERROR
        assert values(span.attributes)["error.type"] == "upstream_error"


def test_metrics_have_the_names_and_units_of_the_conventions(tmp_path: Path) -> None:
    with collecting() as collector, simulating() as base_url:
        metrics = f'[metrics]\nendpoint = "{collector.url}"\ninterval = "1s"\n'
        text = metrics + config(base_url, collector.url)
        with running(tmp_path, text) as gateway:
            with gateway.openai() as client:
                answer = client.chat.completions.create(model="mine", messages=[{"role": "user", "content": "Hello."}])
            (resource, server), _ = collector.spans(2)
            export = collector.metrics()
            while "gen_ai.server.request.duration" not in (found := by_name(export)):
                export = collector.metrics()
    assert values(export.resource.attributes) == values(resource.attributes)
    assert values(resource.attributes).keys() == {"service.name", "service.version", "service.instance.id"}
    duration = found["gen_ai.server.request.duration"]
    assert duration.unit == "s"
    assert duration.histogram.aggregation_temporality == AGGREGATION_TEMPORALITY_CUMULATIVE
    (point,) = duration.histogram.data_points
    assert (point.count, sum(point.bucket_counts)) == (1, 1)
    assert len(point.bucket_counts) == len(point.explicit_bounds) + 1
    assert values(point.attributes) == {
        "route": "chat_completions",
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "mine",
        "target": "house",
        "outcome": "completed",
    }
    (exemplar,) = point.exemplars
    assert (exemplar.trace_id, exemplar.span_id) == (server.trace_id, server.span_id)
    assert server.start_time_unix_nano < exemplar.time_unix_nano <= point.time_unix_nano
    assert exemplar.as_double == point.sum
    tokens = found["gen_ai.client.inference.usage.output_tokens"]
    assert (tokens.unit, tokens.sum.is_monotonic) == ("{token}", True)
    (point,) = tokens.sum.data_points
    assert point.as_int == answer.usage.completion_tokens
    assert point.start_time_unix_nano < point.time_unix_nano
    assert values(point.attributes)["gen_ai.token.modality"] == "unknown"
    assert found["sluicegate.uptime"].unit == "s"
    assert found["sluicegate.uptime"].gauge.data_points[0].as_double > 0


def by_name(export: ResourceMetrics) -> dict[str, Metric]:
    """The metrics of an export by their names."""
    return {metric.name: metric for scope in export.scope_metrics for metric in scope.metrics}


def values(attributes: Iterable[KeyValue]) -> dict[str, Any]:
    """Attributes by name, with the values of their types."""
    return {it.key: getattr(it.value, it.value.WhichOneof("value")) for it in attributes}


def config(base_url: str, collector: str) -> str:
    return f"""
[traces]
endpoint = "{collector}"

[[upstreams]]
name = "house"
protocol = "chat"
base_url = "{base_url}"

[[models]]
id = "mine"
family = "text"
protocols = ["responses", "chat", "messages"]
targets = [{{ upstream = "house", model = "large" }}]

[[models]]
id = "broken"
family = "text"
protocols = ["chat"]
targets = [{{ upstream = "house", model = "status-500" }}]
"""
