"""`client.responses.connect` of the OpenAI SDK: the Responses API over WebSocket."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from backends import SHAPE, SIMULATED
from gateway import TEXT_KEY
from samples import WEATHER_QUESTION
from test_responses import ASK, FORCED, GET_WEATHER, user

if TYPE_CHECKING:
    from collections.abc import Iterator

    from openai.resources.responses.responses import ResponsesConnection

    from backends import Backend

pytestmark = SHAPE

NOT_STORED: dict[str, Any] = ASK | {"store": False}
TOOLS: dict[str, Any] = {"tools": [GET_WEATHER]}


@contextmanager
def connected(backend: Backend) -> Iterator[ResponsesConnection]:
    url = f"{backend.gateway.url}/v1".replace("http", "ws", 1)
    with (
        backend.gateway.openai(TEXT_KEY, websocket_base_url=url) as client,
        client.responses.connect() as connection,
    ):
        yield connection


def last(connection: ResponsesConnection) -> Any:
    """The last event of a response."""
    ends = {"response.completed", "response.incomplete", "response.failed", "error"}
    return next(event for event in connection if event.type in ends)


def result(call: Any) -> dict[str, Any]:
    """The result of a call of `get_weather`."""
    assert call.name == "get_weather"
    return {"type": "function_call_output", "call_id": call.call_id, "output": "Sunny."}


def test_turns_with_a_tool_continue_each_other(backend: Backend) -> None:
    with connected(backend) as connection:
        create = connection.response.create
        create(**NOT_STORED, **TOOLS, input="Hello.", generate=False)
        prepared = last(connection).response
        assert (prepared.output, prepared.usage.output_tokens) == ([], 0)

        create(**NOT_STORED, **TOOLS, input=WEATHER_QUESTION, tool_choice=FORCED, previous_response_id=prepared.id)
        called = last(connection).response
        (call,) = (item for item in called.output if item.type == "function_call")
        assert called.previous_response_id == prepared.id

        create(**NOT_STORED, **TOOLS, input=[result(call)], previous_response_id=called.id)
        assert last(connection).response.output_text

        for name in ("one", "two"):
            create(**NOT_STORED, input="Hello.", stream_id=name)
        assert {last(connection).stream_id for _ in range(2)} == {"one", "two"}

        create(**NOT_STORED, input="Hello.", previous_response_id="resp_unknown")
        refused = last(connection)
        assert (refused.status, refused.error.code) == (400, "previous_response_not_found")


@pytest.mark.behind(*SIMULATED)
def test_ten_turns_are_as_over_http(backend: Backend) -> None:
    """Ten turns that send only what is new are answered as one request with the whole conversation."""
    conversation: list[Any] = []
    previous: dict[str, str] = {}
    new = [user(WEATHER_QUESTION)]
    with connected(backend) as connection:
        for turn in range(10):
            connection.response.create(**NOT_STORED, **TOOLS, **previous, input=new)
            answer = last(connection).response
            previous = {"previous_response_id": answer.id}
            asked = [*conversation, *new]
            conversation = [*asked, *(item.to_dict() for item in answer.output)]
            if turn % 2 == 0:
                (call,) = answer.output
                new = [result(call)]
            else:
                assert answer.output_text == "The tool said: Sunny."
                new = [user(WEATHER_QUESTION)]
    over_http = backend.openai.responses.create(**NOT_STORED, **TOOLS, input=asked)
    assert (answer.output_text, answer.usage) == (over_http.output_text, over_http.usage)
