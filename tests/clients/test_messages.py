"""`client.messages` of the Anthropic SDK: create, stream, parse and count_tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from anthropic import beta_tool

from backends import ANSWER, EMBEDDED, SHAPE
from samples import LONG, QUESTION, RED_PNG, WEATHER, WEATHER_QUESTION, GetWeather, Nothing, Place, schema_of

if TYPE_CHECKING:
    from anthropic import Anthropic, AsyncAnthropic
    from anthropic.types import Message, RawMessageStreamEvent

pytestmark = SHAPE

# The current major has no argument for the temperature.
COLD: dict[str, Any] = {"extra_body": {"temperature": 0}}
ASK: dict[str, Any] = COLD | {"model": "msg-sonnet-5", "max_tokens": 48}
THINKING: dict[str, Any] = ASK | {
    "max_tokens": 80,
    "thinking": {"type": "adaptive"},
    "output_config": {"effort": "low"},
}
GET_WEATHER = {"name": "get_weather", "description": GetWeather.__doc__, "input_schema": schema_of(GetWeather)}
FORCED = {"type": "tool", "name": "get_weather"}


def user(content: str | list[Any]) -> dict[str, Any]:
    return {"role": "user", "content": content}


def check_whole(message: Message, stop_reason: str = "end_turn") -> None:
    """What every finished message has."""
    assert message.id.startswith("msg_")
    assert (message.type, message.role, message.model) == ("message", "assistant", "msg-sonnet-5")
    assert message.stop_reason == stop_reason
    assert (message.stop_sequence is not None) is (stop_reason == "stop_sequence")
    usage = message.usage
    assert min(usage.input_tokens, usage.output_tokens) > 0
    assert (usage.cache_creation_input_tokens, usage.cache_read_input_tokens) == (0, 0)


def kinds(message: Message) -> list[str]:
    return [block.type for block in message.content]


def text_of(message: Message) -> str:
    return "".join(block.text for block in message.content if block.type == "text")


def check_sequence(events: list[RawMessageStreamEvent]) -> None:
    """A beginning, blocks one after another, an end."""
    assert [events[0].type, *(event.type for event in events[-2:])] == [
        "message_start",
        "message_delta",
        "message_stop",
    ]
    assert events[0].message.content == []
    block, is_open = -1, False
    for event in events[1:-2]:
        if event.type == "content_block_start":
            assert not is_open
            block, is_open = block + 1, True
        assert is_open
        assert event.index == block
        is_open = event.type != "content_block_stop"
    assert not is_open


@pytest.mark.parametrize(
    "question", [pytest.param(QUESTION, id="a string"), pytest.param([{"type": "text", "text": QUESTION}], id="blocks")]
)
def test_text_is_answered(anthropic_client: Anthropic, question: str | list[Any]) -> None:
    message = anthropic_client.messages.create(**ASK, messages=[user(question)])
    check_whole(message)
    assert kinds(message) == ["text"]
    assert text_of(message)


@pytest.mark.parametrize("blocks", [False, True], ids=["a string", "blocks"])
def test_system_text_is_read(anthropic_client: Anthropic, blocks: bool) -> None:
    told = "Be brief."
    cached = {"type": "text", "text": told, "cache_control": {"type": "ephemeral"}}
    system = [cached] if blocks else told
    alone = anthropic_client.messages.create(**ASK, messages=[user(QUESTION)])
    message = anthropic_client.messages.create(**ASK, system=system, messages=[user(QUESTION)])
    assert text_of(message)
    assert message.usage.input_tokens > alone.usage.input_tokens


def test_a_stream_is_the_message_in_pieces(anthropic_client: Anthropic) -> None:
    whole = anthropic_client.messages.create(**ASK, messages=[user(QUESTION)])
    with anthropic_client.messages.create(**ASK, messages=[user(QUESTION)], stream=True) as stream:
        events = list(stream)
    check_sequence(events)
    pieces = [event.delta.text for event in events if event.type == "content_block_delta"]
    assert "".join(pieces) == text_of(whole)
    assert events[-2].delta.stop_reason == "end_turn"
    assert events[-2].usage.output_tokens == whole.usage.output_tokens


@ANSWER
def test_the_stream_helper_folds_to_the_message(anthropic_client: Anthropic) -> None:
    whole = anthropic_client.messages.create(**ASK, messages=[user(QUESTION)])
    with anthropic_client.messages.stream(**ASK, messages=[user(QUESTION)]) as stream:
        assert stream.request_id.startswith("req_")
        text = "".join(stream.text_stream)
        final = stream.get_final_message()
    check_whole(final)
    assert text == text_of(final) == text_of(whole)
    assert final.usage == whole.usage


def test_memory_is_what_the_client_sends_again(anthropic_client: Anthropic) -> None:
    told = [user("My name is Ada."), {"role": "assistant", "content": "Hello, Ada!"}, user("What is my name?")]
    message = anthropic_client.messages.create(**ASK, messages=told)
    alone = anthropic_client.messages.create(**ASK, messages=told[-1:])
    assert text_of(message)
    assert message.usage.input_tokens > alone.usage.input_tokens


@pytest.mark.parametrize("options", [pytest.param(ASK, id="text"), pytest.param(THINKING, id="thoughts and text")])
def test_content_can_be_sent_back_as_it_came(anthropic_client: Anthropic, options: dict[str, Any]) -> None:
    conversation = [user(QUESTION)]
    first = anthropic_client.messages.create(**options, messages=conversation)
    with anthropic_client.messages.stream(**options, messages=conversation) as stream:
        streamed = stream.get_final_message()
    for content in (first.content, streamed.content):
        following = [*conversation, {"role": "assistant", "content": content}, user("And now goodbye.")]
        second = anthropic_client.messages.create(**ASK, messages=following)
        assert kinds(second) == ["text"]
        assert second.usage.input_tokens > first.usage.input_tokens


@ANSWER
def test_a_picture_is_answered_about(anthropic_client: Anthropic) -> None:
    source = {"type": "base64", "media_type": "image/png", "data": RED_PNG}
    question = {"type": "text", "text": "What colour is this image?"}
    message = anthropic_client.messages.create(**ASK, messages=[user([{"type": "image", "source": source}, question])])
    blind = anthropic_client.messages.create(**ASK, messages=[user([question])])
    assert text_of(message)
    assert message.usage.input_tokens > blind.usage.input_tokens


@ANSWER
@pytest.mark.parametrize("choice", [FORCED, {"type": "any"}], ids=["named", "any"])
def test_a_forced_function_is_called(anthropic_client: Anthropic, choice: Any) -> None:
    message = anthropic_client.messages.create(
        **ASK, messages=[user(WEATHER_QUESTION)], tools=[GET_WEATHER], tool_choice=choice
    )
    check_whole(message, "tool_use")
    [call] = message.content
    assert (call.type, call.name) == ("tool_use", "get_weather")
    assert call.id
    GetWeather.model_validate(call.input)


@ANSWER
def test_an_optional_function_is_called_or_left(anthropic_client: Anthropic) -> None:
    ask = ASK | {"messages": [user(WEATHER_QUESTION)], "tools": [GET_WEATHER]}
    check_whole(anthropic_client.messages.create(**ask, tool_choice={"type": "auto"}), "tool_use")
    assert kinds(anthropic_client.messages.create(**ask, tool_choice={"type": "none"})) == ["text"]


def test_a_function_without_parameters_gets_an_empty_object(anthropic_client: Anthropic) -> None:
    clock = {"name": "clock", "input_schema": schema_of(Nothing)}
    ask = ASK | {"messages": [user("What time is it?")], "tools": [clock], "tool_choice": {"type": "any"}}
    whole = anthropic_client.messages.create(**ask)
    with anthropic_client.messages.stream(**ask) as stream:
        streamed = stream.get_final_message()
    assert whole.content[0].input == streamed.content[0].input == {}


def test_streamed_input_is_folded(anthropic_client: Anthropic) -> None:
    ask = ASK | {"messages": [user(WEATHER_QUESTION)], "tools": [GET_WEATHER], "tool_choice": FORCED}
    with anthropic_client.messages.create(**ask, stream=True) as raw:
        check_sequence(list(raw))
    with anthropic_client.messages.stream(**ask) as stream:
        pieces = [event.partial_json for event in stream if event.type == "input_json"]
        final = stream.get_final_message()
    check_whole(final, "tool_use")
    assert GetWeather.model_validate_json("".join(pieces)) == GetWeather.model_validate(final.content[0].input)


@pytest.mark.parametrize("result", [WEATHER, [{"type": "text", "text": WEATHER}]], ids=["a string", "blocks"])
def test_the_result_of_a_function_is_answered_from(anthropic_client: Anthropic, result: str | list[Any]) -> None:
    conversation = [user("What is the temperature in Oslo?")]
    ask = ASK | {"tools": [GET_WEATHER]}
    called = anthropic_client.messages.create(**ask, messages=conversation, tool_choice=FORCED)
    told = {"type": "tool_result", "tool_use_id": called.content[0].id, "content": result}
    following = [*conversation, {"role": "assistant", "content": called.content}, user([told])]
    message = anthropic_client.messages.create(**ask, messages=following)
    assert kinds(message) == ["text"]


# The current major leaves the conversation to the server, which an upstream of this protocol may hold.
@pytest.mark.behind("messages", long=[EMBEDDED])
@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
def test_the_tool_runner_goes_round_by_itself(anthropic_client: Anthropic, streams: bool) -> None:
    asked: list[str] = []

    @beta_tool(input_schema=GetWeather)
    def get_weather(city: str) -> str:
        """Look up the weather of a city."""
        asked.append(city)
        return WEATHER

    runner = anthropic_client.beta.messages.tool_runner(
        **ASK, messages=[user(WEATHER_QUESTION)], tools=[get_weather], max_iterations=3, stream=streams
    )
    final = runner.until_done()
    assert len(asked) == 1
    GetWeather(city=asked[0])
    assert kinds(final) == ["text"]


def test_a_structure_is_parsed(anthropic_client: Anthropic) -> None:
    message = anthropic_client.messages.parse(**ASK, messages=[user("Describe Paris.")], output_format=Place)
    check_whole(message)
    assert isinstance(message.parsed_output, Place)


@ANSWER
def test_a_streamed_structure_is_parsed(anthropic_client: Anthropic) -> None:
    with anthropic_client.messages.stream(**ASK, messages=[user("Describe Paris.")], output_format=Place) as stream:
        final = stream.get_final_message()
    check_whole(final)
    assert isinstance(final.parsed_output, Place)


def test_the_cap_on_the_output_is_kept(anthropic_client: Anthropic) -> None:
    ask = ASK | {"max_tokens": 16, "messages": [user(LONG)]}
    message = anthropic_client.messages.create(**ask)
    with anthropic_client.messages.stream(**ask) as stream:
        final = stream.get_final_message()
    for cut in (message, final):
        check_whole(cut, "max_tokens")
        assert cut.usage.output_tokens == 16
    assert text_of(final) == text_of(message)


# The other protocols do not say which text it was.
@pytest.mark.behind(EMBEDDED, "messages")
def test_a_stop_text_ends_the_answer_and_is_told(anthropic_client: Anthropic) -> None:
    ask = ASK | {"messages": [user("Count from one to five.")]}
    whole = text_of(anthropic_client.messages.create(**ask))
    word = whole.split()[2]
    message = anthropic_client.messages.create(**ask, stop_sequences=[word, "never said"])
    with anthropic_client.messages.stream(**ask, stop_sequences=[word, "never said"]) as stream:
        final = stream.get_final_message()
    for cut in (message, final):
        check_whole(cut, "stop_sequence")
        assert (cut.stop_sequence, text_of(cut)) == (word, whole[: whole.index(word)])


@ANSWER
def test_thoughts_come_first(anthropic_client: Anthropic) -> None:
    ask = THINKING | {"messages": [user(QUESTION)]}
    message = anthropic_client.messages.create(**ask)
    check_whole(message, message.stop_reason)
    assert kinds(message) == ["thinking", "text"]
    thoughts = message.content[0].thinking
    assert thoughts.strip()
    with anthropic_client.messages.stream(**ask) as stream:
        pieces = [event.thinking for event in stream if event.type == "thinking"]
        final = stream.get_final_message()
    assert "".join(pieces) == thoughts
    assert kinds(final) == ["thinking", "text"]


# The other protocols cannot count ahead.
@pytest.mark.behind(EMBEDDED, "messages")
def test_tokens_are_counted_as_they_are_billed(anthropic_client: Anthropic) -> None:
    ask = {"model": "msg-sonnet-5", "system": "Be brief.", "messages": [user(QUESTION)]}
    message = anthropic_client.messages.create(**COLD, **ask, max_tokens=8)
    assert anthropic_client.messages.count_tokens(**ask).input_tokens == message.usage.input_tokens


def test_the_beta_endpoint_is_the_same(anthropic_client: Anthropic) -> None:
    ask = ASK | {"messages": [user(QUESTION)]}
    message = anthropic_client.beta.messages.create(**ask, betas=["a-beta-of-tomorrow"])
    check_whole(message)
    with anthropic_client.beta.messages.stream(**ask) as stream:
        assert text_of(stream.get_final_message()) == text_of(message)


def test_the_id_of_the_request_is_in_the_headers(anthropic_client: Anthropic) -> None:
    raw = anthropic_client.messages.with_raw_response.create(**ASK, messages=[user("Say hello.")])
    assert raw.headers["request-id"].startswith("req_")
    assert raw.headers["x-request-id"] == raw.headers["request-id"]
    assert raw.parse()._request_id == raw.headers["request-id"]


@pytest.mark.anyio
async def test_create_is_awaited(async_anthropic_client: AsyncAnthropic) -> None:
    messages = async_anthropic_client.messages
    message = await messages.create(**ASK, messages=[user(QUESTION)])
    check_whole(message)
    async with await messages.create(**ASK, messages=[user(QUESTION)], stream=True) as stream:
        check_sequence([event async for event in stream])


@pytest.mark.anyio
async def test_the_stream_helper_is_awaited(async_anthropic_client: AsyncAnthropic) -> None:
    async with async_anthropic_client.messages.stream(**ASK, messages=[user(QUESTION)]) as stream:
        text = "".join([piece async for piece in stream.text_stream])
        final = await stream.get_final_message()
    check_whole(final)
    assert text == text_of(final)


@pytest.mark.anyio
async def test_parse_is_awaited(async_anthropic_client: AsyncAnthropic) -> None:
    message = await async_anthropic_client.messages.parse(
        **ASK, messages=[user("Describe Paris.")], output_format=Place
    )
    assert isinstance(message.parsed_output, Place)


@pytest.mark.behind("messages", long=[EMBEDDED])
@pytest.mark.anyio
async def test_count_tokens_is_awaited(async_anthropic_client: AsyncAnthropic) -> None:
    count = await async_anthropic_client.messages.count_tokens(model="msg-sonnet-5", messages=[user(QUESTION)])
    assert count.input_tokens > 0
