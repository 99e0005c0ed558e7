"""The SDKs' own accumulators before upstreams of every protocol.

What the helpers make of a stream is what a plain reply says: texts, calls, why it ended and what it took. The
upstream is an honest simulator, so both are known to be the same answer.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import openai
import pytest

from gateway import Gateway, running
from samples import RED_URL
from simulator import simulating

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from anthropic import Anthropic
    from anthropic.types import Message
    from openai import OpenAI
    from openai.lib.streaming.chat import ChatCompletionStream
    from openai.types.chat import ChatCompletion
    from openai.types.responses import Response

UPSTREAMS = ["responses", "chat", "messages"]
CITY = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
PLACE = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "people": {"type": "integer"}},
    "required": ["name", "people"],
    "additionalProperties": False,
}
TOOLS = {"get_weather": "The weather now.", "get_time": "The time now."}
ARGUMENTS = '{"city":"Paris"}'
PNG = RED_URL.partition(",")[2]


@pytest.fixture(scope="module")
def upstreams(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway whose models `responses`, `chat` and `messages` are at upstreams that speak these."""
    with simulating() as base_url, running(tmp_path_factory.mktemp("upstreams"), config(base_url)) as gateway:
        yield gateway


@pytest.fixture(scope="module")
def openai_upstreams(upstreams: Gateway) -> Iterator[OpenAI]:
    with upstreams.openai(KEY) as client:
        yield client


@pytest.fixture(scope="module")
def anthropic_upstreams(upstreams: Gateway) -> Iterator[Anthropic]:
    with upstreams.anthropic(KEY) as client:
        yield client


def config(base_url: str) -> str:
    lines = [
        "[[keys]]",
        'name = "upstreams"',
        f'hash = "sha256:{hashlib.sha256(KEY.encode()).hexdigest()}"',
        'scopes = ["text", "messages"]',
    ]
    for protocol in UPSTREAMS:
        lines += ["[[upstreams]]", f'name = "{protocol}"', f'protocol = "{protocol}"', f'base_url = "{base_url}"']
    for protocol in UPSTREAMS:
        lines += ["[[models]]", f'id = "{protocol}"', 'family = "text"', f"protocols = {UPSTREAMS}"]
        lines += ["string_input = true", f'targets = [{{ upstream = "{protocol}", model = "theirs" }}]']
    return "\n".join(lines)


KEY = "sg_test_upstreams_key_00000000000000000"

# What each case adds to a request, by the protocol of the client.
RESPONSES: dict[str, dict[str, Any]] = {
    "text": {"input": "Hello.", "instructions": "Be brief."},
    "parallel_tools": {"input": "Weather and time in Paris, in parallel.", "tools": True},
    "forced_tool": {
        "input": "Anything.",
        "tools": True,
        "tool_choice": {"type": "function", "name": "get_time"},
        "parallel_tool_calls": False,
    },
    "tool_results": {
        "input": [
            {"role": "user", "content": "Weather and time?"},
            {"type": "function_call", "call_id": "call_1", "name": "get_weather", "arguments": ARGUMENTS},
            {"type": "function_call", "call_id": "call_2", "name": "get_time", "arguments": ARGUMENTS},
            {"type": "function_call_output", "call_id": "call_1", "output": "Sunny."},
            {"type": "function_call_output", "call_id": "call_2", "output": "Noon."},
        ],
        "tools": True,
    },
    "images": {
        "input": [
            {
                "role": "user",
                "content": [{"type": "input_text", "text": "Look."}, {"type": "input_image", "image_url": RED_URL}],
            }
        ]
    },
    "reasoning": {"input": "Think.", "reasoning": {"effort": "low", "summary": "auto"}},
    "schema": {
        "input": "A place.",
        "text": {"format": {"type": "json_schema", "name": "place", "strict": True, "schema": PLACE}},
    },
    "cap": {"input": "Please count to 200.", "max_output_tokens": 16},
    "refusal": {"input": "Please refuse this."},
}
CHAT: dict[str, dict[str, Any]] = {
    "text": {"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello."}]},
    "parallel_tools": {"said": "Weather and time in Paris, in parallel.", "tools": True},
    "forced_tool": {
        "said": "Anything.",
        "tools": True,
        "tool_choice": {"type": "function", "function": {"name": "get_time"}},
        "parallel_tool_calls": False,
    },
    "tool_results": {
        "messages": [
            {"role": "user", "content": "Weather and time?"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": f"call_{n}", "type": "function", "function": {"name": name, "arguments": ARGUMENTS}}
                    for n, name in enumerate(TOOLS)
                ],
            },
            {"role": "tool", "tool_call_id": "call_0", "content": "Sunny."},
            {"role": "tool", "tool_call_id": "call_1", "content": "Noon."},
        ],
        "tools": True,
    },
    "images": {
        "messages": [
            {
                "role": "user",
                "content": [{"type": "text", "text": "Look."}, {"type": "image_url", "image_url": {"url": RED_URL}}],
            }
        ]
    },
    "reasoning": {"said": "Think.", "reasoning_effort": "low"},
    "schema": {
        "said": "A place.",
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "place", "strict": True, "schema": PLACE},
        },
    },
    "cap": {"said": "Please count to 200.", "max_completion_tokens": 16},
    "refusal": {"said": "Please refuse this."},
}
MESSAGES: dict[str, dict[str, Any]] = {
    "text": {"said": "Hello.", "system": "Be brief."},
    "parallel_tools": {"said": "Weather and time in Paris, in parallel.", "tools": True},
    "forced_tool": {
        "said": "Anything.",
        "tools": True,
        "tool_choice": {"type": "tool", "name": "get_time", "disable_parallel_tool_use": True},
    },
    "tool_results": {
        "messages": [
            {"role": "user", "content": "Weather and time?"},
            {
                "role": "assistant",
                "content": [
                    {"type": "tool_use", "id": f"toolu_{n}", "name": name, "input": {"city": "Paris"}}
                    for n, name in enumerate(TOOLS)
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "toolu_0", "content": "Sunny."},
                    {"type": "tool_result", "tool_use_id": "toolu_1", "content": "Noon."},
                ],
            },
        ],
        "tools": True,
    },
    "images": {
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "Look."},
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
                ],
            }
        ]
    },
    "reasoning": {"said": "Think.", "thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 2048},
    "schema": {"said": "A place.", "output_config": {"format": {"type": "json_schema", "schema": PLACE}}},
    "cap": {"said": "Please count to 200.", "max_tokens": 16},
    "refusal": {"said": "Please refuse this."},
}


def asked(case: dict[str, Any], model: str, tool: Callable[[str, str], dict[str, Any]]) -> dict[str, Any]:
    """The request of a case, with its short forms written out."""
    body = {"model": model} | case
    if said := body.pop("said", None):
        body["messages"] = [{"role": "user", "content": said}]
    if body.get("tools"):
        body["tools"] = [tool(name, about) for name, about in TOOLS.items()]
    return body


@pytest.mark.parametrize("case", RESPONSES)
@pytest.mark.parametrize("upstream", UPSTREAMS)
def test_responses_stream_is_the_response(openai_upstreams: OpenAI, upstream: str, case: str) -> None:
    def tool(name: str, about: str) -> dict[str, Any]:
        return {"type": "function", "name": name, "description": about, "parameters": CITY, "strict": True}

    body = asked(RESPONSES[case], upstream, tool)
    whole = openai_upstreams.responses.create(**body)
    with openai_upstreams.responses.stream(**body) as stream:
        *_, last = stream
        # The helper knows whole answers only; of one that is cut it hands out the last event.
        final = stream.get_final_response() if whole.status == "completed" else last.response
    assert of_response(final) == of_response(whole)
    assert whole.model == upstream


def of_response(response: Response) -> dict[str, Any]:
    """What a response says, without what names it."""
    items = []
    for item in response.output:
        said = item.model_dump(mode="json", exclude_unset=True)
        for name in ("id", "call_id", "parsed_arguments"):
            said.pop(name, None)
        for part in said.get("content") or []:
            part.pop("parsed", None)
        items.append(said)
    details = response.incomplete_details
    assert response.usage is not None
    return {
        "items": items,
        "status": (response.status, details and details.reason),
        "usage": response.usage.model_dump(),
    }


@pytest.mark.parametrize("case", CHAT)
@pytest.mark.parametrize("upstream", UPSTREAMS)
def test_chat_stream_is_the_completion(openai_upstreams: OpenAI, upstream: str, case: str) -> None:
    def tool(name: str, about: str) -> dict[str, Any]:
        function = {"name": name, "description": about, "parameters": CITY, "strict": True}
        return {"type": "function", "function": function}

    body = asked(CHAT[case], upstream, tool)
    whole = openai_upstreams.chat.completions.create(**body)
    with openai_upstreams.chat.completions.stream(**body, stream_options={"include_usage": True}) as stream:
        for _ in stream:
            pass
        final = final_completion(stream)
    assert of_completion(final) == of_completion(whole)
    assert whole.model == upstream


def final_completion(stream: ChatCompletionStream[Any]) -> ChatCompletion:
    """What was accumulated. The helper raises for an answer that is cut or withheld, and has it in the error."""
    try:
        return stream.get_final_completion()
    except openai.LengthFinishReasonError as error:
        return error.completion
    except openai.ContentFilterFinishReasonError:
        return stream.current_completion_snapshot


def of_completion(completion: ChatCompletion) -> dict[str, Any]:
    choice = completion.choices[0]
    calls = [(call.function.name, call.function.arguments) for call in choice.message.tool_calls or []]
    assert completion.usage is not None
    return {
        # Streams begin with an empty piece of text, whatever follows.
        "text": (choice.message.content or None, choice.message.refusal),
        "thoughts": getattr(choice.message, "reasoning_content", None),
        "calls": calls,
        "stop": choice.finish_reason,
        "usage": completion.usage.model_dump(exclude_none=True),
    }


@pytest.mark.parametrize("case", MESSAGES)
@pytest.mark.parametrize("upstream", UPSTREAMS)
def test_messages_stream_is_the_message(anthropic_upstreams: Anthropic, upstream: str, case: str) -> None:
    def tool(name: str, about: str) -> dict[str, Any]:
        return {"name": name, "description": about, "input_schema": CITY}

    body = {"max_tokens": 512} | asked(MESSAGES[case], upstream, tool)
    whole = anthropic_upstreams.messages.create(**body)
    with anthropic_upstreams.messages.stream(**body) as stream:
        for _ in stream:
            pass
        final = stream.get_final_message()
    assert of_message(final) == of_message(whole)
    assert whole.model == upstream


def of_message(message: Message) -> dict[str, Any]:
    blocks = []
    for block in message.content:
        said = block.model_dump(mode="json", exclude_none=True)
        # The signature of thoughts of Responses has their id.
        for name in ("id", "parsed_output", "signature"):
            said.pop(name, None)
        blocks.append(said)
    return {
        "blocks": blocks,
        "stop": (message.stop_reason, message.stop_sequence),
        "usage": (message.usage.input_tokens, message.usage.output_tokens),
    }
