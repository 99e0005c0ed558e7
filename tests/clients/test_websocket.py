"""`client.responses.connect` of the OpenAI SDK: the Responses API over WebSocket."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from backends import SHAPE
from gateway import TEXT_KEY
from samples import WEATHER_QUESTION
from test_responses import ASK, FORCED, GET_WEATHER

if TYPE_CHECKING:
    from openai.resources.responses.responses import ResponsesConnection

    from backends import Backend

pytestmark = SHAPE

NOT_STORED: dict[str, Any] = ASK | {"store": False}


def last(connection: ResponsesConnection) -> Any:
    """The last event of a response."""
    ends = {"response.completed", "response.incomplete", "response.failed", "error"}
    return next(event for event in connection if event.type in ends)


def test_turns_with_a_tool_continue_each_other(backend: Backend) -> None:
    url = f"{backend.gateway.url}/v1".replace("http", "ws", 1)
    tools = {"tools": [GET_WEATHER]}
    with (
        backend.gateway.openai(TEXT_KEY, websocket_base_url=url) as client,
        client.responses.connect() as connection,
    ):
        create = connection.response.create
        create(**NOT_STORED, **tools, input="Hello.", generate=False)
        prepared = last(connection).response
        assert (prepared.output, prepared.usage.output_tokens) == ([], 0)

        create(**NOT_STORED, **tools, input=WEATHER_QUESTION, tool_choice=FORCED, previous_response_id=prepared.id)
        called = last(connection).response
        (call,) = (item for item in called.output if item.type == "function_call")
        assert call.name == "get_weather"
        assert called.previous_response_id == prepared.id

        result = {"type": "function_call_output", "call_id": call.call_id, "output": "Sunny."}
        create(**NOT_STORED, **tools, input=[result], previous_response_id=called.id)
        assert last(connection).response.output_text

        for name in ("one", "two"):
            create(**NOT_STORED, input="Hello.", stream_id=name)
        assert {last(connection).stream_id for _ in range(2)} == {"one", "two"}

        create(**NOT_STORED, input="Hello.", previous_response_id="resp_unknown")
        refused = last(connection)
        assert (refused.status, refused.error.code) == (400, "previous_response_not_found")
