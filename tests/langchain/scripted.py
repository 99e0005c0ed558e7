"""The scripted model behind Chat, Responses and Messages, as an HTTP server of this process."""

from __future__ import annotations

import itertools
import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import prompt
import published
from model import Answer, answer, pieces

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def serving() -> Iterator[str]:
    """Serves the model on a port that the system chooses, and gives its base URL."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1"
        finally:
            server.shutdown()


class Handler(BaseHTTPRequestHandler):
    """Answers each request on a connection of its own."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        problems, read, write, stream = PROTOCOLS[self.path]
        try:
            if found := problems(body):
                raise prompt.Refusal("; ".join(found))
            answered = answer(read(body))
        except prompt.Refusal as refusal:
            error = {"type": "invalid_request_error", "message": str(refusal), "param": None, "code": None}
            self.reply(400, "application/json", [json.dumps({"type": "error", "error": error})])
            return
        if body.get("stream"):
            events = stream(body, answered)
            self.reply(200, "text/event-stream", events)
        else:
            self.reply(200, "application/json", [json.dumps(write(body, answered))])

    def reply(self, status: int, kind: str, parts: Any) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("connection", "close")
        self.end_headers()
        for part in parts:
            self.wfile.write(part.encode())

    def log_message(self, *_: object) -> None:
        pass


def chat(body: dict[str, Any], answered: Answer) -> dict[str, Any]:
    message: dict[str, Any] = {
        "role": "assistant",
        "content": answered.text or None,
        "refusal": None,
        "annotations": [],
    }
    if answered.call:
        message["tool_calls"] = [_chat_call(answered)]
    choice = {"index": 0, "message": message, "finish_reason": _finish(answered), "logprobs": None}
    head = {"id": _id("chatcmpl-"), "object": "chat.completion", "created": CREATED, "model": body["model"]}
    return head | {"choices": [choice], "usage": _chat_usage(answered)}


def chat_stream(body: dict[str, Any], answered: Answer) -> Iterator[str]:
    head = {"id": _id("chatcmpl-"), "object": "chat.completion.chunk", "created": CREATED, "model": body["model"]}
    is_counted = (body.get("stream_options") or {}).get("include_usage")
    empty = {"usage": None} if is_counted else {}

    def chunk(delta: dict[str, Any], finish: str | None = None) -> str:
        choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
        return _data(head | {"choices": [choice]} | empty)

    if answered.call:
        call = _chat_call(answered)
        arguments = call["function"]["arguments"]
        call["function"]["arguments"] = ""
        yield chunk({"role": "assistant", "content": None, "tool_calls": [{"index": 0, **call}]})
        for piece in pieces(arguments):
            yield chunk({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]})
    else:
        yield chunk({"role": "assistant", "content": "", "refusal": None})
        for piece in pieces(answered.text):
            yield chunk({"content": piece})
    yield chunk({}, _finish(answered))
    if is_counted:
        yield _data(head | {"choices": [], "usage": _chat_usage(answered)})
    yield "data: [DONE]\n\n"


def _chat_call(answered: Answer) -> dict[str, Any]:
    name, arguments = answered.call or ("", {})
    return {"id": _id("call_"), "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}


def _chat_usage(answered: Answer) -> dict[str, Any]:
    thought, written = _tokens(answered)
    return {
        "prompt_tokens": 20,
        "completion_tokens": thought + written,
        "total_tokens": 20 + thought + written,
        "prompt_tokens_details": {"cached_tokens": 8, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": thought, "audio_tokens": 0},
    }


def _finish(answered: Answer) -> str:
    return "tool_calls" if answered.call else "stop"


def responses(body: dict[str, Any], answered: Answer) -> dict[str, Any]:
    return _response(body, "completed", _items(answered), answered)


def responses_stream(body: dict[str, Any], answered: Answer) -> Iterator[str]:
    numbers = itertools.count()
    response = _response(body, "in_progress", [], answered)

    def event(kind: str, **members: Any) -> str:
        return _event(kind, {"sequence_number": next(numbers)} | members)

    yield event("response.created", response=response)
    yield event("response.in_progress", response=response)
    items = _items(answered)
    for index, item in enumerate(items):
        place = {"item_id": item["id"], "output_index": index}
        if item["type"] == "reasoning":
            yield event("response.output_item.added", output_index=index, item=item | {"summary": []})
            part = item["summary"][0]
            place["summary_index"] = 0
            yield event("response.reasoning_summary_part.added", **place, part=part | {"text": ""})
            yield event("response.reasoning_summary_text.delta", **place, delta=part["text"])
            yield event("response.reasoning_summary_text.done", **place, text=part["text"])
            yield event("response.reasoning_summary_part.done", **place, part=part)
        elif item["type"] == "function_call":
            begun = item | {"arguments": "", "status": "in_progress"}
            yield event("response.output_item.added", output_index=index, item=begun)
            for piece in pieces(item["arguments"]):
                yield event("response.function_call_arguments.delta", **place, delta=piece)
            done = {"arguments": item["arguments"], "name": item["name"]}
            yield event("response.function_call_arguments.done", **place, **done)
        else:
            begun = item | {"content": [], "status": "in_progress"}
            yield event("response.output_item.added", output_index=index, item=begun)
            part = item["content"][0]
            place["content_index"] = 0
            yield event("response.content_part.added", **place, part=part | {"text": ""})
            for piece in pieces(part["text"]):
                yield event("response.output_text.delta", **place, delta=piece, logprobs=[])
            yield event("response.output_text.done", **place, text=part["text"], logprobs=[])
            yield event("response.content_part.done", **place, part=part)
        yield event("response.output_item.done", output_index=index, item=item)
    yield event("response.completed", response=response | _response(body, "completed", items, answered, response["id"]))


def _items(answered: Answer) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    if answered.reasoning:
        summary = [{"type": "summary_text", "text": answered.reasoning}]
        items += [{"type": "reasoning", "id": _id("rs_"), "summary": summary}]
    if answered.call:
        name, arguments = answered.call
        call = {"type": "function_call", "id": _id("fc_"), "call_id": _id("call_"), "status": "completed"}
        return [*items, call | {"name": name, "arguments": json.dumps(arguments)}]
    part = {"type": "output_text", "text": answered.text, "annotations": [], "logprobs": []}
    message = {"type": "message", "id": _id("msg_"), "status": "completed", "role": "assistant", "content": [part]}
    return [*items, message]


def _response(
    body: dict[str, Any], status: str, items: list[dict[str, Any]], answered: Answer, known: str | None = None
) -> dict[str, Any]:
    thought, written = _tokens(answered)
    usage = {
        "input_tokens": 20,
        "input_tokens_details": {"cached_tokens": 8},
        "output_tokens": thought + written,
        "output_tokens_details": {"reasoning_tokens": thought},
        "total_tokens": 20 + thought + written,
    }
    return {
        "id": known or _id("resp_"),
        "object": "response",
        "created_at": CREATED,
        "completed_at": CREATED if status == "completed" else None,
        "status": status,
        "model": body["model"],
        "output": items,
        "error": None,
        "incomplete_details": None,
        "instructions": body.get("instructions"),
        "metadata": {},
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "top_p": 1.0,
        "tool_choice": body.get("tool_choice", "auto"),
        "tools": [{"strict": True, "description": None} | tool for tool in body.get("tools", [])],
        "text": body.get("text", {"format": {"type": "text"}}),
        "reasoning": body.get("reasoning", {"effort": None, "summary": None}),
        "truncation": "disabled",
        "background": False,
        "frequency_penalty": 0.0,
        "max_output_tokens": body.get("max_output_tokens"),
        "max_tool_calls": None,
        "presence_penalty": 0.0,
        "previous_response_id": None,
        "prompt_cache_key": body.get("prompt_cache_key"),
        "safety_identifier": None,
        "service_tier": "default",
        "store": body.get("store", True),
        "top_logprobs": 0,
        "usage": usage if status == "completed" else None,
    }


def messages(body: dict[str, Any], answered: Answer) -> dict[str, Any]:
    return _message(body, _blocks(answered)) | _ending(answered) | {"usage": _messages_usage(answered)}


def messages_stream(body: dict[str, Any], answered: Answer) -> Iterator[str]:
    usage = _messages_usage(answered)
    head = _message(body, []) | {"stop_reason": None, "stop_sequence": None, "usage": usage | {"output_tokens": 1}}
    yield _event("message_start", {"message": head})
    for index, block in enumerate(_blocks(answered)):
        match block["type"]:
            case "thinking":
                begun = block | {"thinking": "", "signature": ""}
                deltas = [{"type": "thinking_delta", "thinking": piece} for piece in pieces(block["thinking"])]
                deltas += [{"type": "signature_delta", "signature": block["signature"]}]
            case "tool_use":
                begun = block | {"input": {}}
                arguments = json.dumps(block["input"]) if block["input"] else ""
                deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in ["", *pieces(arguments)]]
            case _:
                begun = block | {"text": ""}
                deltas = [{"type": "text_delta", "text": piece} for piece in pieces(block["text"])]
        yield _event("content_block_start", {"index": index, "content_block": begun})
        for delta in deltas:
            yield _event("content_block_delta", {"index": index, "delta": delta})
        yield _event("content_block_stop", {"index": index})
    last = {name: count for name, count in usage.items() if "tokens" in name}
    yield _event("message_delta", {"delta": _ending(answered), "usage": last})
    yield _event("message_stop", {})


def _message(body: dict[str, Any], blocks: list[dict[str, Any]]) -> dict[str, Any]:
    head = {"id": _id("msg_"), "type": "message", "role": "assistant", "model": body["model"]}
    return head | {"content": blocks, "container": None, "stop_details": None}


def _blocks(answered: Answer) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    if answered.reasoning:
        blocks += [{"type": "thinking", "thinking": answered.reasoning, "signature": "c2lnbmVk"}]
    if answered.call:
        name, arguments = answered.call
        call = {"type": "tool_use", "id": _id("toolu_"), "name": name, "input": arguments}
        blocks += [call | {"caller": {"type": "direct"}}]
    elif answered.text:
        blocks += [{"type": "text", "text": answered.text, "citations": None}]
    return blocks


def _ending(answered: Answer) -> dict[str, Any]:
    if answered.call:
        return {"stop_reason": "tool_use", "stop_sequence": None}
    reason = "stop_sequence" if answered.stopped_by else "end_turn"
    return {"stop_reason": reason, "stop_sequence": answered.stopped_by}


def _messages_usage(answered: Answer) -> dict[str, Any]:
    thought, written = _tokens(answered)
    return {
        "input_tokens": 8,
        "cache_read_input_tokens": 8,
        "cache_creation_input_tokens": 4,
        "cache_creation": {"ephemeral_5m_input_tokens": 4, "ephemeral_1h_input_tokens": 0},
        "output_tokens": thought + written,
        "output_tokens_details": {"thinking_tokens": thought},
        "server_tool_use": None,
        "service_tier": "standard",
        "inference_geo": None,
    }


def _tokens(answered: Answer) -> tuple[int, int]:
    """The tokens of the reasoning, and of what follows it."""
    return len(pieces(answered.reasoning)), len(pieces(answered.text)) or 5


def _id(prefix: str) -> str:
    return f"{prefix}{next(NUMBERS):024}"


def _event(kind: str, members: dict[str, Any]) -> str:
    return f"event: {kind}\n{_data({'type': kind} | members)}"


def _data(value: Any) -> str:
    return f"data: {json.dumps(value)}\n\n"


NUMBERS = itertools.count(1)
CREATED = 1_789_000_000
# By the path: what finds the problems of a request, what reads it, and what writes a plain answer and a stream.
PROTOCOLS = {
    "/v1/chat/completions": (published.problems_of_chat, prompt.of_chat, chat, chat_stream),
    "/v1/responses": (published.problems_of_responses, prompt.of_responses, responses, responses_stream),
    "/v1/messages": (published.problems_of_messages, prompt.of_messages, messages, messages_stream),
}
