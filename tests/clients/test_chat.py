"""`client.chat.completions` of the OpenAI SDK: create, stream and parse."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import openai
import pytest

from backends import ANSWER, EMBEDDED, SHAPE
from samples import JSON_QUESTION, LONG, QUESTION, RED_URL, WEATHER, WEATHER_QUESTION, GetWeather, Place, schema_of

if TYPE_CHECKING:
    from openai import AsyncOpenAI, OpenAI
    from openai.types import CompletionUsage
    from openai.types.chat import ChatCompletion, ChatCompletionChunk, ChatCompletionMessage

pytestmark = SHAPE

ASK: dict[str, Any] = {"model": "alt-flash", "temperature": 0, "max_tokens": 48, "reasoning_effort": "none"}
THINKING: dict[str, Any] = ASK | {"reasoning_effort": "low", "max_tokens": 80}
GET_WEATHER = openai.pydantic_function_tool(GetWeather, name="get_weather")
FORCED = {"type": "function", "function": {"name": "get_weather"}}
WITH_USAGE = {"stream": True, "stream_options": {"include_usage": True}}


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def check_usage(usage: CompletionUsage | None) -> None:
    assert usage is not None
    assert min(usage.prompt_tokens, usage.completion_tokens) > 0
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens
    assert usage.prompt_tokens_details is None
    assert usage.completion_tokens_details is None


def only(completion: ChatCompletion, finish_reason: str = "stop") -> ChatCompletionMessage:
    """The message of a whole completion, checked."""
    assert (completion.object, completion.model) == ("chat.completion", "alt-flash")
    check_usage(completion.usage)
    assert [choice.index for choice in completion.choices] == [0]
    assert completion.choices[0].finish_reason == finish_reason
    return completion.choices[0].message


def text_of(chunks: list[ChatCompletionChunk]) -> str:
    """What the chunks say together, checked to be one completion."""
    assert len({(chunk.id, chunk.created, chunk.model) for chunk in chunks}) == 1
    choices = [choice for chunk in chunks for choice in chunk.choices]
    assert [choice.delta.role for choice in choices if choice.delta.role] == ["assistant"]
    assert [choice.finish_reason for choice in choices[:-1]] == [None] * (len(choices) - 1)
    assert choices[-1].finish_reason is not None
    return "".join(choice.delta.content or "" for choice in choices)


def test_text_is_answered(openai_client: OpenAI) -> None:
    completion = openai_client.chat.completions.create(**ASK, messages=[user(QUESTION)])
    message = only(completion)
    assert message.role == "assistant"
    assert message.content
    assert message.refusal is None
    assert message.tool_calls is None
    assert completion.id.startswith("chatcmpl-")


@pytest.mark.parametrize("role", ["system", "developer"])
def test_system_text_is_read(openai_client: OpenAI, role: str) -> None:
    told = {"role": role, "content": "Be brief."}
    alone = openai_client.chat.completions.create(**ASK, messages=[user(QUESTION)])
    completion = openai_client.chat.completions.create(**ASK, messages=[told, user(QUESTION)])
    assert completion.choices[0].message.content
    assert completion.usage.prompt_tokens > alone.usage.prompt_tokens


@ANSWER
def test_a_stream_is_the_completion_in_pieces(openai_client: OpenAI) -> None:
    whole = only(openai_client.chat.completions.create(**ASK, messages=[user(QUESTION)]))
    with openai_client.chat.completions.create(**ASK, messages=[user(QUESTION)], stream=True) as stream:
        chunks = list(stream)
    assert text_of(chunks) == whole.content
    assert all(chunk.usage is None for chunk in chunks)


def test_usage_ends_a_stream_that_asked_for_it(openai_client: OpenAI) -> None:
    whole = openai_client.chat.completions.create(**ASK, messages=[user(QUESTION)])
    with openai_client.chat.completions.create(**ASK, **WITH_USAGE, messages=[user(QUESTION)]) as stream:
        chunks = list(stream)
    assert text_of(chunks) == whole.choices[0].message.content
    assert chunks[-1].choices == []
    assert chunks[-1].usage == whole.usage
    assert all(chunk.usage is None for chunk in chunks[:-1])


def test_the_stream_helper_folds_to_the_completion(openai_client: OpenAI) -> None:
    whole = only(openai_client.chat.completions.create(**ASK, messages=[user(QUESTION)]))
    options = {"stream_options": {"include_usage": True}}
    with openai_client.chat.completions.stream(**ASK, **options, messages=[user(QUESTION)]) as stream:
        events = list(stream)
        final = stream.get_final_completion()
    assert only(final).content == whole.content
    assert [event.content for event in events if event.type == "content.done"] == [whole.content]


def test_memory_is_what_the_client_sends_again(openai_client: OpenAI) -> None:
    told = [user("My name is Ada."), {"role": "assistant", "content": "Hello, Ada!"}, user("What is my name?")]
    completion = openai_client.chat.completions.create(**ASK, messages=told)
    alone = openai_client.chat.completions.create(**ASK, messages=told[-1:])
    assert completion.choices[0].message.content
    assert completion.usage.prompt_tokens > alone.usage.prompt_tokens


@pytest.mark.parametrize("options", [pytest.param(ASK, id="text"), pytest.param(THINKING, id="thoughts and text")])
def test_a_message_can_be_sent_back_as_it_came(openai_client: OpenAI, options: dict[str, Any]) -> None:
    first = openai_client.chat.completions.create(**options, messages=[user(QUESTION)])
    messages = [user(QUESTION), first.choices[0].message, user("And now goodbye.")]
    second = openai_client.chat.completions.create(**ASK, messages=messages)
    check_usage(second.usage)
    assert second.usage.prompt_tokens > first.usage.prompt_tokens


@ANSWER
def test_a_picture_is_answered_about(openai_client: OpenAI) -> None:
    picture = {"type": "image_url", "image_url": {"url": RED_URL, "detail": "low"}}
    question = {"type": "text", "text": "What colour is this image?"}
    ask = [{"role": "user", "content": [question, picture]}]
    completion = openai_client.chat.completions.create(**ASK, messages=ask)
    blind = openai_client.chat.completions.create(**ASK, messages=[{"role": "user", "content": [question]}])
    assert completion.choices[0].message.content
    assert completion.usage.prompt_tokens > blind.usage.prompt_tokens


@ANSWER
@pytest.mark.parametrize("choice", [pytest.param(FORCED, id="named"), "required"])
def test_a_forced_function_is_called(openai_client: OpenAI, choice: Any) -> None:
    completion = openai_client.chat.completions.create(
        **ASK, messages=[user(WEATHER_QUESTION)], tools=[GET_WEATHER], tool_choice=choice
    )
    message = only(completion, "tool_calls")
    assert message.content is None
    [call] = message.tool_calls
    assert (call.type, call.function.name) == ("function", "get_weather")
    assert call.id
    GetWeather.model_validate_json(call.function.arguments)


@ANSWER
def test_an_optional_function_is_called_or_left(openai_client: OpenAI) -> None:
    ask = ASK | {"messages": [user(WEATHER_QUESTION)], "tools": [GET_WEATHER]}
    assert only(openai_client.chat.completions.create(**ask, tool_choice="auto"), "tool_calls").tool_calls
    left = openai_client.chat.completions.create(**ask, tool_choice="none")
    assert left.choices[0].message.tool_calls is None
    assert left.choices[0].message.content


def test_streamed_arguments_are_parsed(openai_client: OpenAI) -> None:
    ask = ASK | {"messages": [user(WEATHER_QUESTION)], "tools": [GET_WEATHER], "tool_choice": FORCED}
    options = {"stream_options": {"include_usage": True}}
    with openai_client.chat.completions.stream(**ask, **options) as stream:
        events = list(stream)
        message = only(stream.get_final_completion(), "tool_calls")
    [call] = message.tool_calls
    assert isinstance(call.function.parsed_arguments, GetWeather)
    [done] = [event for event in events if event.type == "tool_calls.function.arguments.done"]
    assert (done.name, done.arguments) == ("get_weather", call.function.arguments)
    assert done.parsed_arguments == call.function.parsed_arguments


@pytest.mark.parametrize("parses", [False, True], ids=["create", "parse"])
def test_the_result_of_a_function_is_answered_from(openai_client: OpenAI, parses: bool) -> None:
    completions = openai_client.chat.completions
    call = completions.parse if parses else completions.create
    messages: list[Any] = [user("What is the temperature in Oslo?")]
    message = only(call(**ASK, messages=messages, tools=[GET_WEATHER], tool_choice=FORCED), "tool_calls")
    result = {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": WEATHER}
    completion = completions.create(**ASK, messages=[*messages, message, result], tools=[GET_WEATHER])
    answer = completion.choices[0].message
    assert answer.content
    assert not answer.tool_calls


# Messages has no such mode.
@pytest.mark.behind("responses", "chat", long=[EMBEDDED])
def test_json_mode_gives_an_object(openai_client: OpenAI) -> None:
    ask = ASK | {"response_format": {"type": "json_object"}}
    messages = [user(JSON_QUESTION)]
    assert isinstance(json.loads(only(openai_client.chat.completions.create(**ask, messages=messages)).content), dict)


def test_a_schema_is_kept_to(openai_client: OpenAI) -> None:
    schema = {"name": "place", "schema": schema_of(Place), "strict": True}
    completion = openai_client.chat.completions.create(
        **ASK, messages=[user("Describe Paris.")], response_format={"type": "json_schema", "json_schema": schema}
    )
    Place.model_validate_json(only(completion).content)


def test_a_structure_is_parsed(openai_client: OpenAI) -> None:
    completion = openai_client.chat.completions.parse(**ASK, messages=[user("Describe Paris.")], response_format=Place)
    assert isinstance(only(completion).parsed, Place)


@ANSWER
def test_a_streamed_structure_is_parsed(openai_client: OpenAI) -> None:
    options = {"stream_options": {"include_usage": True}, "response_format": Place}
    with openai_client.chat.completions.stream(**ASK, **options, messages=[user("Describe Paris.")]) as stream:
        [done] = [event.parsed for event in stream if event.type == "content.done"]
        message = only(stream.get_final_completion())
    assert isinstance(message.parsed, Place)
    assert done == message.parsed


@ANSWER
@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
def test_the_cap_on_the_output_is_kept(openai_client: OpenAI, name: str) -> None:
    ask = {option: value for option, value in ASK.items() if option != "max_tokens"} | {name: 16}
    completion = openai_client.chat.completions.create(**ask, messages=[user(LONG)])
    assert only(completion, "length").content
    assert completion.usage.completion_tokens == 16
    with openai_client.chat.completions.create(**ask, **WITH_USAGE, messages=[user(LONG)]) as stream:
        chunks = list(stream)
    assert text_of(chunks) == completion.choices[0].message.content
    assert chunks[-2].choices[0].finish_reason == "length"
    assert chunks[-1].usage == completion.usage


# Responses has no limit below 16 tokens, and the structure is shorter.
@pytest.mark.behind(EMBEDDED, "chat", "messages")
def test_the_helpers_raise_for_a_structure_that_was_cut(openai_client: OpenAI) -> None:
    """The client's own limit: what was cut is not parsed, and the helpers say so."""
    ask = ASK | {"max_tokens": 2, "messages": [user("Describe Paris.")], "response_format": Place}
    with pytest.raises(openai.LengthFinishReasonError):
        openai_client.chat.completions.parse(**ask)
    with pytest.raises(openai.LengthFinishReasonError), openai_client.chat.completions.stream(**ask) as stream:
        stream.until_done()


# Responses has no stop texts.
@pytest.mark.behind(EMBEDDED, "chat", "messages")
def test_a_stop_text_ends_the_answer_and_is_no_part_of_it(openai_client: OpenAI) -> None:
    messages = [user("Count from one to five.")]
    whole = openai_client.chat.completions.create(**ASK, messages=messages).choices[0].message.content
    word = whole.split()[2]
    for stop in (word, [word, "never said"]):
        completion = openai_client.chat.completions.create(**ASK, messages=messages, stop=stop)
        assert (only(completion).content or "") == whole[: whole.index(word)]


# Messages has no thoughts at a temperature: https://platform.claude.com/docs/en/build-with-claude/extended-thinking
@pytest.mark.behind(EMBEDDED, "responses", "chat")
def test_thoughts_come_first(openai_client: OpenAI) -> None:
    ask = THINKING | {"messages": [user(QUESTION)]}
    message = openai_client.chat.completions.create(**ask).choices[0].message
    # No member of the type: the SDK keeps it as an extra one.
    thoughts = message.model_extra["reasoning_content"]
    assert thoughts.strip()
    assert message.content
    with openai_client.chat.completions.create(**ask, stream=True) as stream:
        deltas = [choice.delta for chunk in stream for choice in chunk.choices]
    pieces = [(delta.model_extra or {}).get("reasoning_content") for delta in deltas]
    assert "".join(piece or "" for piece in pieces) == thoughts
    last_thought = max(index for index, piece in enumerate(pieces) if piece)
    assert not any(delta.content for delta in deltas[:last_thought])


def test_the_id_of_the_request_is_in_the_headers(openai_client: OpenAI) -> None:
    raw = openai_client.chat.completions.with_raw_response.create(**ASK, messages=[user("Say hello.")])
    assert raw.headers["x-request-id"].startswith("req_")
    assert raw.parse()._request_id == raw.headers["x-request-id"]


@pytest.mark.anyio
async def test_create_is_awaited(async_openai_client: AsyncOpenAI) -> None:
    completions = async_openai_client.chat.completions
    message = only(await completions.create(**ASK, messages=[user(QUESTION)]))
    async with await completions.create(**ASK, messages=[user(QUESTION)], stream=True) as stream:
        assert text_of([chunk async for chunk in stream]) == message.content


@pytest.mark.anyio
async def test_the_stream_helper_is_awaited(async_openai_client: AsyncOpenAI) -> None:
    ask = ASK | {"messages": [user(WEATHER_QUESTION)], "tools": [GET_WEATHER], "tool_choice": FORCED}
    options = {"stream_options": {"include_usage": True}}
    async with async_openai_client.chat.completions.stream(**ask, **options) as stream:
        message = only(await stream.get_final_completion(), "tool_calls")
    assert isinstance(message.tool_calls[0].function.parsed_arguments, GetWeather)


@pytest.mark.anyio
async def test_parse_is_awaited(async_openai_client: AsyncOpenAI) -> None:
    completion = await async_openai_client.chat.completions.parse(
        **ASK, messages=[user("Describe Paris.")], response_format=Place
    )
    assert isinstance(only(completion).parsed, Place)
