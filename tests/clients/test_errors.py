"""What the SDKs raise when the gateway refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import anthropic
import openai
import pytest

from backends import EMBEDDED, GATE, catalog, params
from gateway import IMAGE_KEY, MESSAGES_KEY, TEXT_KEY, Gateway, running
from samples import STORY
from simulator import simulating

if TYPE_CHECKING:
    from collections.abc import Iterator

    from anthropic import Anthropic, AsyncAnthropic
    from openai import AsyncOpenAI, OpenAI

pytestmark = GATE

WRONG_KEY = "sg_test_wrong_key_00000000000000000"
LIMIT = "gateway_concurrency_limit"
STORY_MESSAGES = [{"role": "user", "content": STORY}]

# A call that waits for its client, and for more arguments.
Call: TypeAlias = Callable[..., Any]


def respond(**change: Any) -> Call:
    ask = {"model": "alt-flash", "input": "Say hello.", "max_output_tokens": 16} | change
    return lambda client, **more: client.responses.create(**ask, **more)


def chat(**change: Any) -> Call:
    ask = {"model": "alt-flash", "messages": STORY_MESSAGES, "max_tokens": 16} | change
    return lambda client, **more: client.chat.completions.create(**ask, **more)


def draw(**change: Any) -> Call:
    ask = {"model": "model-image-2.5-flare", "prompt": "A red circle.", "size": "1024x1024"} | change
    return lambda client, **more: client.images.generate(**ask, **more)


def message(**change: Any) -> Call:
    ask = {"model": "msg-sonnet-5", "messages": STORY_MESSAGES, "max_tokens": 16} | change
    return lambda client, **more: client.messages.create(**ask, **more)


def count(**change: Any) -> Call:
    ask = {"model": "msg-sonnet-5", "messages": STORY_MESSAGES} | change
    return lambda client: client.messages.count_tokens(**ask)


def list_models(client: OpenAI | Anthropic) -> Any:
    return client.models.list()


def content(part: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"role": "user", "content": [part]}]


def check_openai(error: openai.APIStatusError, kind: str, code: str, param: str | None = None) -> None:
    assert (error.type, error.code, error.param) == (kind, code, param)
    assert error.request_id.startswith("req_")
    assert error.request_id == error.response.headers["x-request-id"]


def check_anthropic(error: anthropic.APIStatusError, kind: str, text: str) -> None:
    assert error.body["type"] == "error"
    assert error.body["error"]["type"] == error.type == kind
    assert text in error.body["error"]["message"]
    assert error.body["request_id"] == error.request_id == error.response.headers["request-id"]


@pytest.mark.parametrize(
    "call",
    [respond(), respond(stream=True), chat(), chat(stream=True), draw(), draw(stream=True), list_models],
    ids=["responses", "responses stream", "chat", "chat stream", "images", "images stream", "models"],
)
def test_openai_wrong_key(gateway: Gateway, call: Call) -> None:
    with gateway.openai(WRONG_KEY) as client, pytest.raises(openai.AuthenticationError) as raised:
        call(client)
    check_openai(raised.value, "invalid_request_error", "invalid_api_key")


@pytest.mark.parametrize(
    "call",
    [message(), message(stream=True), count(), list_models],
    ids=["messages", "messages stream", "count", "models"],
)
def test_anthropic_wrong_key(gateway: Gateway, call: Call) -> None:
    with gateway.anthropic(WRONG_KEY) as client, pytest.raises(anthropic.AuthenticationError) as raised:
        call(client)
    check_anthropic(raised.value, "authentication_error", "")


def test_anthropic_key_as_a_token(gateway: Gateway) -> None:
    with gateway.anthropic(key=None, auth_token=MESSAGES_KEY) as client:
        assert count()(client).input_tokens > 0
    with gateway.anthropic(key=None, auth_token=WRONG_KEY) as client, pytest.raises(anthropic.AuthenticationError):
        count()(client)


@pytest.mark.parametrize("key", [MESSAGES_KEY, IMAGE_KEY], ids=["messages", "images"])
@pytest.mark.parametrize("call", [respond(), chat()], ids=["responses", "chat"])
def test_openai_wrong_capability(gateway: Gateway, key: str, call: Call) -> None:
    with gateway.openai(key) as client, pytest.raises(openai.PermissionDeniedError) as raised:
        call(client)
    check_openai(raised.value, "invalid_request_error", "insufficient_permissions")


@pytest.mark.parametrize("key", [TEXT_KEY, IMAGE_KEY], ids=["text", "images"])
@pytest.mark.parametrize("call", [message(), count()], ids=["messages", "count"])
def test_anthropic_wrong_capability(gateway: Gateway, key: str, call: Call) -> None:
    with gateway.anthropic(key) as client, pytest.raises(anthropic.PermissionDeniedError) as raised:
        call(client)
    check_anthropic(raised.value, "permission_error", "permission")


@pytest.mark.parametrize(
    "call", [respond(model="nope", input=STORY_MESSAGES), chat(model="nope")], ids=["responses", "chat"]
)
def test_openai_unknown_model(openai_client: OpenAI, call: Call) -> None:
    with pytest.raises(openai.NotFoundError) as raised:
        call(openai_client)
    check_openai(raised.value, "invalid_request_error", "model_not_found", "model")


def test_openai_unknown_model_retrieved(openai_client: OpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as raised:
        openai_client.models.retrieve("nope")
    assert raised.value.code == "model_not_found"


@pytest.mark.parametrize("call", [message(model="nope"), count(model="nope")], ids=["messages", "count"])
def test_anthropic_unknown_model(anthropic_client: Anthropic, call: Call) -> None:
    with pytest.raises(anthropic.NotFoundError) as raised:
        call(anthropic_client)
    check_anthropic(raised.value, "not_found_error", "model: nope")


def test_anthropic_unknown_model_retrieved(anthropic_client: Anthropic) -> None:
    with pytest.raises(anthropic.NotFoundError) as raised:
        anthropic_client.models.retrieve("nope")
    check_anthropic(raised.value, "not_found_error", "nope")


ORPHAN = {"type": "function_call_output", "call_id": "call_1", "output": "1"}
EMPTY_PICTURE = {"type": "input_image", "image_url": "data:image/png;base64,"}
SEARCH = {"type": "function", "name": "search"}
UNNAMED_RESULT = {"role": "tool", "content": "1"}


@pytest.mark.parametrize(
    ("call", "code", "param"),
    [
        pytest.param(respond(model="model-5.5"), "invalid_type", "input", id="a string for a model of lists"),
        pytest.param(respond(input=[]), "empty_array", "input", id="an empty list"),
        pytest.param(respond(max_output_tokens=0), "integer_below_min_value", "max_output_tokens", id="a cap of 0"),
        pytest.param(
            respond(model="msg-sonnet-5", input=STORY_MESSAGES),
            "model_not_supported",
            "model",
            id="another endpoint's model",
        ),
        pytest.param(
            respond(previous_response_id="resp_1"),
            "previous_response_not_found",
            "previous_response_id",
            id="a response by its id",
        ),
        pytest.param(respond(conversation="conv_1"), "unsupported_parameter", "conversation", id="a conversation"),
        pytest.param(respond(background=True), "unsupported_parameter", "background", id="in the background"),
        pytest.param(respond(tool_choice=SEARCH), "invalid_value", "tool_choice", id="a function that is not there"),
        pytest.param(respond(input=[ORPHAN]), "invalid_value", "input[0].call_id", id="a result without its call"),
        pytest.param(
            respond(input=content(EMPTY_PICTURE)), "invalid_value", "input[0].content[0].image_url", id="no picture"
        ),
        pytest.param(chat(messages=[]), "empty_array", "messages", id="no messages"),
        pytest.param(chat(model="model-5.5"), "model_not_supported", "model", id="chat with a model of lists"),
        pytest.param(chat(max_tokens=0), "integer_below_min_value", "max_tokens", id="chat with a cap of 0"),
        pytest.param(chat(stop=["a", "b", "c", "d", "e"]), "array_above_max_length", "stop", id="five stop texts"),
        pytest.param(chat(top_logprobs=2), "invalid_value", "top_logprobs", id="top_logprobs without logprobs"),
        pytest.param(
            chat(messages=[*STORY_MESSAGES, UNNAMED_RESULT]),
            "missing_required_parameter",
            "messages[1].tool_call_id",
            id="a result that names no call",
        ),
    ],
)
@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
def test_openai_bad_request(openai_client: OpenAI, call: Call, code: str, param: str, streams: bool) -> None:
    with pytest.raises(openai.BadRequestError) as raised:
        call(openai_client, stream=streams)
    check_openai(raised.value, "invalid_request_error", code, param)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        pytest.param(message(messages=[]), "messages: at least one message is required", id="no messages"),
        pytest.param(message(model="alt-flash"), "model: alt-flash", id="another endpoint's model"),
        pytest.param(message(extra_body={"max_tokens": None}), "max_tokens: Field required", id="no cap"),
        pytest.param(message(max_tokens=-1), "max_tokens", id="a cap below 0"),
        pytest.param(message(tools=[{"name": "a b", "input_schema": {}}]), "tools.0.name", id="a bad name"),
        pytest.param(
            message(messages=content({"type": "image", "source": {"type": "file", "file_id": "file_1"}})),
            "messages.0.content.0.source",
            id="a picture by its id",
        ),
        pytest.param(count(messages=[]), "messages: at least one message is required", id="nothing to count"),
    ],
)
def test_anthropic_bad_request(anthropic_client: Anthropic, call: Call, text: str) -> None:
    with pytest.raises(anthropic.BadRequestError) as raised:
        call(anthropic_client)
    check_anthropic(raised.value, "invalid_request_error", text)


def test_an_unknown_item_is_not_found(openai_client: OpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as raised:
        openai_client.responses.create(model="alt-flash", input=[{"type": "item_reference", "id": "msg_1"}])
    check_openai(raised.value, "invalid_request_error", "not_found", "input")


def test_an_unknown_path_is_not_found(openai_client: OpenAI, anthropic_client: Anthropic) -> None:
    with pytest.raises(openai.NotFoundError):
        openai_client.embeddings.create(model="alt-flash", input="Say hello.")
    with pytest.raises(anthropic.NotFoundError):
        anthropic_client.messages.batches.list()


@pytest.fixture(scope="module", params=params("chat", long=[EMBEDDED]))
def full_gateway(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway with one place, which is taken: the answer does not come to its end, or is not read that far."""
    ask = {"model": "alt-flash", "messages": STORY_MESSAGES, "reasoning_effort": "none", "max_tokens": 4096}
    with (
        simulating() as base_url,
        running(tmp_path_factory.mktemp("full"), full(request.param, base_url)) as gateway,
        gateway.openai() as client,
        client.chat.completions.create(**ask, stream=True) as held,
    ):
        next(held)
        yield gateway


def full(backend: str, base_url: str) -> str:
    models = "" if backend == EMBEDDED else catalog(backend, base_url, "stall-after-3")
    return f"{models}\n[limits]\nconcurrency = 1\n"


@pytest.mark.parametrize(
    ("call", "key"),
    [
        pytest.param(respond(), TEXT_KEY, id="responses"),
        pytest.param(chat(), TEXT_KEY, id="chat"),
        pytest.param(chat(stream=True), TEXT_KEY, id="chat stream"),
        pytest.param(draw(), IMAGE_KEY, id="images"),
        pytest.param(draw(stream=True), IMAGE_KEY, id="images stream"),
    ],
)
def test_openai_over_the_limit(full_gateway: Gateway, call: Call, key: str) -> None:
    with full_gateway.openai(key) as client, pytest.raises(openai.RateLimitError) as raised:
        call(client)
    check_openai(raised.value, "rate_limit_error", LIMIT)
    assert 1 <= int(raised.value.response.headers["retry-after"]) <= 30


@pytest.mark.parametrize(
    "call", [message(), message(stream=True), count()], ids=["messages", "messages stream", "count"]
)
def test_anthropic_over_the_limit(full_gateway: Gateway, call: Call) -> None:
    with full_gateway.anthropic() as client, pytest.raises(anthropic.RateLimitError) as raised:
        call(client)
    check_anthropic(raised.value, "rate_limit_error", "")
    assert raised.value.body["error"]["details"]["error_code"] == LIMIT
    # The current major reads it.
    assert getattr(raised.value, "error_code", LIMIT) == LIMIT
    assert 1 <= int(raised.value.response.headers["retry-after"]) <= 30


def test_a_responses_stream_over_the_limit_is_told_within(full_gateway: Gateway) -> None:
    with full_gateway.openai(_strict_response_validation=False) as client, respond(stream=True)(client) as stream:
        events = list(stream)
    assert [event.type for event in events] == ["response.created", "response.failed"]
    assert (events[-1].response.status, events[-1].response.error.code) == ("failed", LIMIT)


def test_a_strict_client_does_not_know_the_code_of_the_limit(full_gateway: Gateway) -> None:
    """The client's own limit: its list of codes is closed, and the code is the gateway's."""
    with full_gateway.openai() as client, respond(stream=True)(client) as stream:
        assert next(stream).type == "response.created"
        with pytest.raises(openai.APIResponseValidationError):
            next(stream)


def test_the_stream_helper_over_the_limit(full_gateway: Gateway) -> None:
    with (
        full_gateway.openai(_strict_response_validation=False) as client,
        client.responses.stream(model="alt-flash", input=STORY) as stream,
    ):
        assert [event.type for event in stream] == ["response.created", "response.failed"]
        # The client's own limit: its final response is one that completed.
        with pytest.raises(RuntimeError, match=r"response\.completed"):
            stream.get_final_response()


@pytest.mark.anyio
async def test_openai_awaited(async_openai_client: AsyncOpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as raised:
        await async_openai_client.responses.create(model="nope", input=STORY_MESSAGES)
    check_openai(raised.value, "invalid_request_error", "model_not_found", "model")


@pytest.mark.anyio
async def test_anthropic_awaited(async_anthropic_client: AsyncAnthropic) -> None:
    with pytest.raises(anthropic.NotFoundError) as raised:
        await async_anthropic_client.messages.create(model="nope", messages=STORY_MESSAGES, max_tokens=16)
    check_anthropic(raised.value, "not_found_error", "model: nope")
