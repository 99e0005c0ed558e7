"""What the official SDKs make of an answer in each protocol, by each way in which they read it.

An answer is read plain, event by event (`stream`), or by the SDK's own accumulator (`helper`).
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from anthropic import Anthropic
    from openai import OpenAI


@dataclass
class Answer:
    """What an SDK makes of an answer. The end is `complete`, the reason of a cut, or another word."""

    end: str = "missing"
    text: str = ""
    calls: list[tuple[str, str]] = field(default_factory=list)


def of_response(response: Any) -> Answer:
    details = response.incomplete_details
    answer = Answer("complete" if response.status == "completed" else details.reason)
    for item in response.output:
        if item.type == "message":
            answer.text += "".join(part.text if part.type == "output_text" else part.refusal for part in item.content)
        if item.type == "function_call":
            answer.calls.append((item.name, item.arguments))
    return answer


def responses_plain(client: OpenAI, body: dict[str, Any]) -> Answer:
    return of_response(client.responses.create(**body))


def responses_stream(client: OpenAI, body: dict[str, Any]) -> Answer:
    answer = Answer()
    for event in client.responses.create(**body, stream=True):
        match event.type:
            case "response.output_text.delta" | "response.refusal.delta":
                answer.text += event.delta
            case "response.output_item.done" if event.item.type == "function_call":
                answer.calls.append((event.item.name, event.item.arguments))
            case "response.completed" | "response.incomplete":
                answer.end = of_response(event.response).end
    return answer


def responses_helper(client: OpenAI, body: dict[str, Any]) -> Answer:
    with client.responses.stream(**body) as stream:
        *_, last = stream
    return of_response(last.response)


def of_completion(completion: Any) -> Answer:
    choice = completion.choices[0]
    text = (choice.message.content or "") + (choice.message.refusal or "")
    calls = [(call.function.name, call.function.arguments) for call in choice.message.tool_calls or []]
    return Answer(CHAT_ENDS.get(choice.finish_reason, choice.finish_reason), text, calls)


def chat_plain(client: OpenAI, body: dict[str, Any]) -> Answer:
    return of_completion(client.chat.completions.create(**body))


def chat_stream(client: OpenAI, body: dict[str, Any]) -> Answer:
    answer = Answer()
    calls: dict[int, list[str]] = {}
    for chunk in client.chat.completions.create(**body, stream=True, stream_options={"include_usage": True}):
        for choice in chunk.choices:
            if choice.index:
                continue
            answer.text += (choice.delta.content or "") + (choice.delta.refusal or "")
            answer.end = CHAT_ENDS.get(choice.finish_reason, choice.finish_reason or answer.end)
            for call in choice.delta.tool_calls or []:
                pieces = calls.setdefault(call.index, ["", ""])
                pieces[0] += call.function.name or ""
                pieces[1] += call.function.arguments or ""
    answer.calls = [(name, arguments) for name, arguments in calls.values()]
    return answer


def chat_helper(client: OpenAI, body: dict[str, Any]) -> Answer:
    with client.chat.completions.stream(**body, stream_options={"include_usage": True}) as stream:
        for _ in stream:
            pass
        # `get_final_completion` raises for an answer that is cut.
        return of_completion(stream.current_completion_snapshot)


def of_message(message: Any) -> Answer:
    text = "".join(block.text for block in message.content if block.type == "text")
    calls = [(block.name, json.dumps(block.input)) for block in message.content if block.type == "tool_use"]
    return Answer(MESSAGES_ENDS.get(message.stop_reason, message.stop_reason), text, calls)


def messages_plain(client: Anthropic, body: dict[str, Any]) -> Answer:
    return of_message(client.messages.create(**body))


def messages_stream(client: Anthropic, body: dict[str, Any]) -> Answer:
    answer = Answer()
    word = None
    calls: dict[int, tuple[Any, list[str]]] = {}
    for event in client.messages.create(**body, stream=True):
        match event.type:
            case "content_block_start" if event.content_block.type == "tool_use":
                calls[event.index] = (event.content_block, [])
            case "content_block_start" if event.content_block.type == "text":
                answer.text += event.content_block.text
            case "content_block_delta" if event.delta.type == "text_delta":
                answer.text += event.delta.text
            case "content_block_delta" if event.delta.type == "input_json_delta":
                # Tools that the server runs itself have input, too.
                if event.index in calls:
                    calls[event.index][1].append(event.delta.partial_json)
            case "message_delta":
                word = event.delta.stop_reason
            case "message_stop":
                answer.end = MESSAGES_ENDS.get(word, word)
    answer.calls = [(block.name, "".join(pieces) or json.dumps(block.input)) for block, pieces in calls.values()]
    return answer


def messages_helper(client: Anthropic, body: dict[str, Any]) -> Answer:
    with client.messages.stream(**body) as stream:
        return of_message(stream.get_final_message())


def images_plain(client: OpenAI, body: dict[str, Any]) -> Answer:
    reply = client.images.generate(**body)
    return Answer("complete", "".join(picture.b64_json for picture in reply.data))


def images_stream(client: OpenAI, body: dict[str, Any]) -> Answer:
    *_, last = client.images.generate(**body, stream=True, partial_images=3)
    return Answer("complete" if last.type == "image_generation.completed" else last.type, last.b64_json)


READERS: dict[tuple[str, str], Callable[[Any, dict[str, Any]], Answer]] = {
    ("responses", "plain"): responses_plain,
    ("responses", "stream"): responses_stream,
    ("responses", "helper"): responses_helper,
    ("chat", "plain"): chat_plain,
    ("chat", "stream"): chat_stream,
    ("chat", "helper"): chat_helper,
    ("messages", "plain"): messages_plain,
    ("messages", "stream"): messages_stream,
    ("messages", "helper"): messages_helper,
    ("images", "plain"): images_plain,
    ("images", "stream"): images_stream,
}
CHAT_ENDS = {
    **dict.fromkeys(["stop", "tool_calls", "function_call"], "complete"),
    "length": "max_output_tokens",
    "content_filter": "content_filter",
}
MESSAGES_ENDS = {
    **dict.fromkeys(["end_turn", "tool_use", "stop_sequence", "pause_turn"], "complete"),
    **dict.fromkeys(["max_tokens", "model_context_window_exceeded"], "max_output_tokens"),
    "refusal": "content_filter",
}
