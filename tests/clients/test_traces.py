"""The spans of requests, as a collector reads them that shares no code with the gateway."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import openai
import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from collector import Collector, collecting
from gateway import Gateway, running
from simulator import simulating

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from opentelemetry.proto.common.v1.common_pb2 import KeyValue

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
