"""`client.responses` of the OpenAI SDK: create, stream and parse."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import openai
import pytest

from backends import ANSWER, EMBEDDED, SHAPE
from samples import (
    JSON_QUESTION,
    QUESTION,
    RED_URL,
    STORY,
    WEATHER,
    WEATHER_QUESTION,
    GetWeather,
    Nothing,
    Place,
    schema_of,
)

if TYPE_CHECKING:
    from openai import AsyncOpenAI, OpenAI
    from openai.types.responses import Response, ResponseStreamEvent

pytestmark = SHAPE

ASK: dict[str, Any] = {
    "model": "alt-flash",
    "temperature": 0,
    "max_output_tokens": 48,
    "reasoning": {"effort": "none"},
}
THINKING: dict[str, Any] = ASK | {"reasoning": {"effort": "low", "summary": "auto"}, "max_output_tokens": 80}
# The helpers take this form and parse the arguments; on the wire it is the form below.
PARSED_WEATHER = openai.pydantic_function_tool(GetWeather, name="get_weather")
GET_WEATHER = {"type": "function", **PARSED_WEATHER["function"]}
FORCED = {"type": "function", "name": "get_weather"}


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def check_whole(response: Response) -> None:
    """What every finished response has."""
    assert response.id.startswith("resp_")
    assert (response.object, response.model, response.store) == ("response", "alt-flash", True)
    assert response.error is None
    usage = response.usage
    assert usage is not None
    assert usage.input_tokens > 0
    assert usage.output_tokens > 0
    assert usage.total_tokens == usage.input_tokens + usage.output_tokens
    assert usage.output_tokens_details.reasoning_tokens <= usage.output_tokens


def kinds(response: Response) -> list[str]:
    return [item.type for item in response.output]


def check_sequence(events: list[ResponseStreamEvent], end: str = "response.completed") -> None:
    """Numbered from 0 without a gap, with one beginning and one end."""
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert [event.type for event in events[:2]] == ["response.created", "response.in_progress"]
    assert events[-1].type == end
    assert len({event.response.id for event in events if hasattr(event, "response")}) == 1


@pytest.mark.parametrize(
    "question",
    [
        pytest.param(QUESTION, id="a string"),
        pytest.param([user(QUESTION)], id="a list"),
        pytest.param(
            [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": QUESTION}]}], id="parts"
        ),
    ],
)
def test_text_is_answered(openai_client: OpenAI, question: str | list[Any]) -> None:
    response = openai_client.responses.create(**ASK, input=question)
    check_whole(response)
    assert (response.status, kinds(response)) == ("completed", ["message"])
    assert response.output[0].id.startswith("msg_")
    assert response.output_text


def test_a_list_is_taken_by_a_model_that_takes_no_string(openai_client: OpenAI) -> None:
    response = openai_client.responses.create(model="model-5.5", input=[user("Say hello.")], max_output_tokens=16)
    assert (response.model, response.object) == ("model-5.5", "response")


@pytest.mark.parametrize("role", ["instructions", "system", "developer"])
def test_system_text_is_read(openai_client: OpenAI, role: str) -> None:
    told, question = "Be brief.", user(QUESTION)
    alone = openai_client.responses.create(**ASK, input=[question])
    if role == "instructions":
        response = openai_client.responses.create(**ASK, instructions=told, input=[question])
        assert response.instructions == told
    else:
        response = openai_client.responses.create(**ASK, input=[{"role": role, "content": told}, question])
    check_whole(response)
    assert response.usage.input_tokens > alone.usage.input_tokens


# Of what an upstream of the same protocol says only the name of the model is changed, and it is not sent the metadata.
@pytest.mark.behind("chat", "messages", long=[EMBEDDED])
def test_the_request_is_repeated(openai_client: OpenAI) -> None:
    asked = {"metadata": {"run": "1"}, "tools": [GET_WEATHER], "tool_choice": "none", "top_p": 0.5, "user": "u1"}
    response = openai_client.responses.create(**ASK, input="Say hello.", parallel_tool_calls=False, **asked)
    assert (response.metadata, response.tool_choice, response.top_p) == ({"run": "1"}, "none", 0.5)
    assert (response.temperature, response.max_output_tokens) == (0, 48)
    assert (response.parallel_tool_calls, response.user) == (False, "u1")
    assert response.reasoning is not None
    assert response.reasoning.effort == "none"
    assert [tool.name for tool in response.tools] == ["get_weather"]


@ANSWER
def test_a_stream_is_the_response_in_pieces(openai_client: OpenAI) -> None:
    whole = openai_client.responses.create(**ASK, input=QUESTION)
    with openai_client.responses.create(**ASK, input=QUESTION, stream=True) as stream:
        events = list(stream)
    check_sequence(events)
    streamed = events[-1].response
    check_whole(streamed)
    assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == whole.output_text
    assert (streamed.output_text, streamed.usage) == (whole.output_text, whole.usage)


def test_padding_comes_when_it_is_asked_for(openai_client: OpenAI) -> None:
    for asked in (True, False):
        with openai_client.responses.create(
            **ASK, input="Say hello.", stream=True, stream_options={"include_obfuscation": asked}
        ) as stream:
            deltas = [event for event in stream if event.type == "response.output_text.delta"]
        assert deltas
        assert all(bool((event.model_extra or {}).get("obfuscation")) is asked for event in deltas)


def test_the_stream_helper_folds_to_the_response(openai_client: OpenAI) -> None:
    whole = openai_client.responses.create(**ASK, input=QUESTION)
    with openai_client.responses.stream(**ASK, input=QUESTION) as stream:
        snapshots = [event.snapshot for event in stream if event.type == "response.output_text.delta"]
        final = stream.get_final_response()
    check_whole(final)
    assert snapshots[-1] == final.output_text == whole.output_text


def test_memory_is_what_the_client_sends_again(openai_client: OpenAI) -> None:
    told = [user("My name is Ada."), {"role": "assistant", "content": "Hello, Ada!"}, user("What is my name?")]
    response = openai_client.responses.create(**ASK, input=told)
    check_whole(response)
    alone = openai_client.responses.create(**ASK, input=told[-1:])
    assert response.usage.input_tokens > alone.usage.input_tokens


@pytest.mark.parametrize("options", [pytest.param(ASK, id="text"), pytest.param(THINKING, id="thoughts and text")])
def test_output_items_can_be_sent_back_as_they_came(openai_client: OpenAI, options: dict[str, Any]) -> None:
    conversation: list[Any] = [user(QUESTION)]
    first = openai_client.responses.create(**options, input=conversation)
    with openai_client.responses.stream(**options, input=conversation) as stream:
        streamed = list(stream)[-1].response
    for output in (first.output, streamed.output):
        following = [*conversation, *output, user("And now goodbye.")]
        second = openai_client.responses.create(**ASK, input=following)
        check_whole(second)
        assert second.usage.input_tokens > first.usage.input_tokens


@ANSWER
def test_a_picture_is_answered_about(openai_client: OpenAI) -> None:
    question = {"type": "input_text", "text": "What colour is this image?"}
    picture = {"type": "input_image", "image_url": RED_URL, "detail": "auto"}
    response = openai_client.responses.create(**ASK, input=[{"role": "user", "content": [question, picture]}])
    check_whole(response)
    blind = openai_client.responses.create(**ASK, input=[{"role": "user", "content": [question]}])
    assert response.usage.input_tokens > blind.usage.input_tokens


@ANSWER
@pytest.mark.parametrize("choice", [pytest.param(FORCED, id="named"), "required"])
def test_a_forced_function_is_called(openai_client: OpenAI, choice: Any) -> None:
    response = openai_client.responses.create(
        **ASK, input=[user(WEATHER_QUESTION)], tools=[GET_WEATHER], tool_choice=choice
    )
    check_whole(response)
    assert (response.status, kinds(response)) == ("completed", ["function_call"])
    call = response.output[0]
    assert (call.name, call.status) == ("get_weather", "completed")
    assert call.call_id
    GetWeather.model_validate_json(call.arguments)


@ANSWER
def test_an_optional_function_is_called_or_left(openai_client: OpenAI) -> None:
    ask = ASK | {"input": [user(WEATHER_QUESTION)], "tools": [GET_WEATHER]}
    called = openai_client.responses.create(**ask, tool_choice="auto")
    assert "function_call" in kinds(called)
    left = openai_client.responses.create(**ask, tool_choice="none")
    assert kinds(left) == ["message"]


def test_a_function_without_parameters_gets_an_empty_object(openai_client: OpenAI) -> None:
    clock = {"type": "function", "name": "clock", "parameters": schema_of(Nothing), "strict": True}
    ask = ASK | {"input": [user("What time is it?")], "tools": [clock], "tool_choice": "required"}
    response = openai_client.responses.create(**ask)
    with openai_client.responses.stream(**ask) as stream:
        streamed = stream.get_final_response()
    assert json.loads(response.output[0].arguments) == json.loads(streamed.output[0].arguments) == {}


def test_streamed_arguments_are_parsed(openai_client: OpenAI) -> None:
    ask = ASK | {"input": [user(WEATHER_QUESTION)], "tools": [PARSED_WEATHER], "tool_choice": FORCED}
    with openai_client.responses.stream(**ask) as stream:
        events = list(stream)
        call = stream.get_final_response().output[0]
    check_sequence(events)
    deltas = [event for event in events if event.type == "response.function_call_arguments.delta"]
    done = [event for event in events if event.type == "response.function_call_arguments.done"]
    assert deltas[-1].snapshot == done[0].arguments == call.arguments
    assert {event.item_id for event in deltas} == {call.id}
    assert call.parsed_arguments == GetWeather.model_validate_json(call.arguments)


@pytest.mark.parametrize("parses", [False, True], ids=["create", "parse"])
def test_the_result_of_a_function_is_answered_from(openai_client: OpenAI, parses: bool) -> None:
    responses = openai_client.responses
    conversation: list[Any] = [user("What is the temperature in Oslo?")]
    ask, tool = (responses.parse, PARSED_WEATHER) if parses else (responses.create, GET_WEATHER)
    called = ask(**ASK, input=conversation, tools=[tool], tool_choice=FORCED)
    result = {"type": "function_call_output", "call_id": called.output[0].call_id, "output": WEATHER}
    response = ask(**ASK, input=[*conversation, *called.output, result], tools=[tool])
    check_whole(response)
    assert kinds(response) == ["message"]
    assert response.output_text


def test_a_conversation_is_continued_by_its_id(openai_client: OpenAI) -> None:
    responses = openai_client.responses
    first = responses.create(**ASK, input=[user(QUESTION)])
    second = responses.create(**ASK, input=[user("And of Italy?")], previous_response_id=first.id)
    check_whole(second)
    assert second.previous_response_id == first.id
    assert responses.retrieve(second.id).output_text == second.output_text
    assert [item.type for item in responses.input_items.list(second.id)] == ["message", "message", "message"]
    responses.delete(first.id)
    with pytest.raises(openai.NotFoundError):
        responses.retrieve(first.id)
    with pytest.raises(openai.BadRequestError):
        responses.create(**ASK, input=[user("And?")], previous_response_id=first.id)


@ANSWER
def test_the_tool_runner_goes_round_by_itself(openai_client: OpenAI) -> None:
    helper = pytest.importorskip("openai.lib.responses_tool_runner", reason="since openai 3")
    asked: list[dict[str, object]] = []

    def execute(arguments: dict[str, object]) -> str:
        asked.append(arguments)
        return WEATHER

    runner = helper.ResponsesToolRunner(functions=[helper.RegisteredFunction(GET_WEATHER, execute)])
    response = runner.run(openai_client, ASK | {"input": [user(WEATHER_QUESTION)]}, max_steps=3)
    assert len(asked) == 1
    GetWeather.model_validate(asked[0])
    assert response.output_text


# Messages has no such mode.
@pytest.mark.behind(EMBEDDED, "responses", "chat")
def test_json_mode_gives_an_object(openai_client: OpenAI) -> None:
    ask = ASK | {"text": {"format": {"type": "json_object"}}}
    response = openai_client.responses.create(**ask, input=[user(JSON_QUESTION)])
    assert response.status == "completed"
    assert isinstance(json.loads(response.output_text), dict)


def test_a_structure_is_parsed(openai_client: OpenAI) -> None:
    response = openai_client.responses.parse(**ASK, input=[user("Describe Paris.")], text_format=Place)
    check_whole(response)
    assert isinstance(response.output_parsed, Place)
    assert response.text is not None
    assert response.text.format.type == "json_schema"


@ANSWER
def test_a_streamed_structure_is_parsed(openai_client: OpenAI) -> None:
    with openai_client.responses.stream(**ASK, input=[user("Describe Paris.")], text_format=Place) as stream:
        done = [event.parsed for event in stream if event.type == "response.output_text.done"]
        final = stream.get_final_response()
    assert isinstance(final.output_parsed, Place)
    assert done == [final.output_parsed]


def test_the_cap_on_the_output_is_kept(openai_client: OpenAI) -> None:
    ask = ASK | {"max_output_tokens": 8, "input": STORY}
    response = openai_client.responses.create(**ask)
    with openai_client.responses.create(**ask, stream=True) as stream:
        events = list(stream)
    check_sequence(events, "response.incomplete")
    for cut in (response, events[-1].response):
        check_whole(cut)
        assert (cut.status, cut.incomplete_details.reason) == ("incomplete", "max_output_tokens")
        assert (cut.output[-1].status, cut.usage.output_tokens) == ("incomplete", 8)


def test_a_cut_stream_is_told_by_the_helper(openai_client: OpenAI) -> None:
    ask = ASK | {"max_output_tokens": 8, "input": STORY}
    with openai_client.responses.stream(**ask) as stream:
        events = list(stream)
        assert events[-1].type == "response.incomplete"
        assert events[-1].response.output_text
        # The client's own limit: its final response is one that completed.
        with pytest.raises(RuntimeError, match=r"response\.completed"):
            stream.get_final_response()


# Messages does not count them.
@pytest.mark.behind(EMBEDDED, "responses", "chat")
def test_thoughts_come_first_and_are_counted(openai_client: OpenAI) -> None:
    ask = THINKING | {"input": QUESTION}
    response = openai_client.responses.create(**ask)
    check_whole(response)
    assert kinds(response) == ["reasoning", "message"]
    thoughts = "".join(part.text for part in response.output[0].summary)
    assert thoughts.strip()
    assert response.usage.output_tokens_details.reasoning_tokens > 0
    with openai_client.responses.stream(**ask) as stream:
        events = list(stream)
    check_sequence(events, f"response.{response.status}")
    assert kinds(events[-1].response) == ["reasoning", "message"]
    pieces = [event.delta for event in events if event.type == "response.reasoning_summary_text.delta"]
    whole = [event.text for event in events if event.type == "response.reasoning_summary_text.done"]
    assert "".join(pieces) == "".join(whole) == thoughts


@pytest.mark.behind(EMBEDDED)
def test_tokens_are_counted_as_they_are_billed(openai_client: OpenAI) -> None:
    ask = {"model": "alt-flash", "instructions": "Be brief.", "input": [user(QUESTION)]}
    ask |= {"reasoning": {"effort": "none"}}
    response = openai_client.responses.create(**ask, max_output_tokens=16)
    count = openai_client.responses.input_tokens.count(**ask)
    assert (count.object, count.input_tokens) == ("response.input_tokens", response.usage.input_tokens)


def test_the_id_of_the_request_is_in_the_headers(openai_client: OpenAI) -> None:
    raw = openai_client.responses.with_raw_response.create(**ASK, input="Say hello.")
    assert raw.headers["content-type"] == "application/json"
    assert raw.headers["x-request-id"].startswith("req_")
    assert raw.parse()._request_id == raw.headers["x-request-id"]
    with openai_client.responses.with_streaming_response.create(**ASK, input="Say hello.", stream=True) as streamed:
        assert streamed.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert streamed.headers["x-request-id"].startswith("req_")
        assert list(streamed.parse())[-1].type == "response.completed"


@pytest.mark.anyio
async def test_create_is_awaited(async_openai_client: AsyncOpenAI) -> None:
    response = await async_openai_client.responses.create(**ASK, input=QUESTION)
    check_whole(response)
    async with await async_openai_client.responses.create(**ASK, input=QUESTION, stream=True) as stream:
        events = [event async for event in stream]
    check_sequence(events)
    assert events[-1].response.output_text == response.output_text


@pytest.mark.anyio
async def test_the_stream_helper_is_awaited(async_openai_client: AsyncOpenAI) -> None:
    ask = ASK | {"input": [user(WEATHER_QUESTION)], "tools": [GET_WEATHER], "tool_choice": FORCED}
    async with async_openai_client.responses.stream(**ask) as stream:
        check_sequence([event async for event in stream])
        final = await stream.get_final_response()
    GetWeather.model_validate_json(final.output[0].arguments)


@pytest.mark.anyio
async def test_parse_is_awaited(async_openai_client: AsyncOpenAI) -> None:
    response = await async_openai_client.responses.parse(**ASK, input=[user("Describe Paris.")], text_format=Place)
    assert isinstance(response.output_parsed, Place)
