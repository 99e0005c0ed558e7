"""Reads the prompt of a request of any protocol, and finds the faults for which a vendor would refuse it."""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass, field
from typing import Any


class Refusal(Exception):  # noqa: N818
    """The request is one that the vendor refuses with status 400."""


@dataclass
class Prompt:
    """A request, whatever its protocol."""

    # The last message of the user.
    text: str = ""
    # The schema of the arguments of each tool.
    tools: dict[str, Any] = field(default_factory=dict)
    # `auto`, `none`, `required`, or the name of a tool after `=`.
    choice: str = "auto"
    # Tools have answered since the last message of the user.
    is_answered: bool = False
    schema: Any = None
    stops: list[str] = field(default_factory=list)
    reasons: bool = False

    def say(self, texts: list[str]) -> None:
        """Adds a message of the user; one of files alone goes with the message before."""
        if text := " ".join(texts).strip():
            self.text, self.is_answered = text, False


def of_chat(body: dict[str, Any]) -> Prompt:
    prompt, called = Prompt(), set()
    for message in body["messages"]:
        role, content = message["role"], message.get("content")
        texts = [_chat_part(part, role) for part in _parts(content)]
        called |= {_call(call["id"], call["function"]["arguments"]) for call in message.get("tool_calls") or []}
        if role == "user":
            prompt.say(texts)
        elif role == "tool":
            _must(message["tool_call_id"] in called, f"no call before the message of the tool: {message}")
            prompt.is_answered = True
        elif role == "assistant":
            _must(bool(content or message.get("tool_calls")), f"a message without content and calls: {message}")
    prompt.tools = {tool["function"]["name"]: tool["function"].get("parameters") for tool in body.get("tools") or []}
    match body.get("tool_choice"):
        case str(choice):
            prompt.choice = choice
        case {"type": "function", "function": {"name": name}}:
            prompt.choice = f"={name}"
    prompt.schema = (body.get("response_format") or {}).get("json_schema", {}).get("schema")
    stop = body.get("stop") or []
    prompt.stops = [stop] if isinstance(stop, str) else stop
    _must("max_tokens" not in body, "max_tokens, which the reasoning models of OpenAI refuse")
    prompt.reasons = body.get("reasoning_effort") not in {None, "none"}
    return _checked(prompt)


def of_responses(body: dict[str, Any]) -> Prompt:
    prompt, called = Prompt(), set()
    items = body["input"]
    for item in [{"role": "user", "content": items}] if isinstance(items, str) else items:
        match item.get("type", "message"):
            case "message":
                role = item["role"]
                kind = "output_text" if role == "assistant" else "input_text"
                texts = [_responses_part(part, role) for part in _parts(item["content"], kind)]
                _must(texts != [], f"a message without content: {item}")
                if role == "user":
                    prompt.say(texts)
            case "function_call":
                called.add(_call(item["call_id"], item["arguments"]))
            case "function_call_output":
                _must(item["call_id"] in called, f"no call before its output: {item}")
                for part in _parts(item["output"], "input_text"):
                    _responses_part(part, "user")
                prompt.is_answered = True
            case "reasoning":
                pass
            case other:
                raise Refusal(f"an item of the type {other}")
    prompt.tools = {tool["name"]: tool.get("parameters") for tool in body.get("tools") or []}
    match body.get("tool_choice"):
        case str(choice):
            prompt.choice = choice
        case {"type": "function", "name": name}:
            prompt.choice = f"={name}"
    prompt.schema = ((body.get("text") or {}).get("format") or {}).get("schema")
    prompt.reasons = (body.get("reasoning") or {}).get("effort") not in {None, "none"}
    return _checked(prompt)


def of_messages(body: dict[str, Any]) -> Prompt:
    _must(isinstance(body.get("max_tokens"), int), "no max_tokens")
    thinking = body.get("thinking") or {"type": "disabled"}
    _must(thinking["type"] != "adaptive", "adaptive thinking, which Claude 4.5 does not know")
    _must(thinking.get("budget_tokens", 0) < body["max_tokens"], "a budget that is not below max_tokens")
    prompt, called = Prompt(), set()
    for part in _parts(body.get("system")):
        _messages_part(part)
    for message in body["messages"]:
        _must(message["role"] in {"user", "assistant"}, f"the role {message['role']}")
        parts = _parts(message["content"])
        _must(parts != [], f"a message without content: {message}")
        results = [part for part in parts if part["type"] == "tool_result"]
        for result in results:
            _must(result["tool_use_id"] in called, f"no call in the message before the result: {result}")
        texts = [_messages_part(part) for part in parts]
        called = {_call(part["id"], part["input"]) for part in parts if part["type"] == "tool_use"}
        if message["role"] == "user":
            prompt.is_answered = prompt.is_answered or results != []
            prompt.say(texts)
    _must(not called, f"calls without results: {called}")
    prompt.tools = {tool["name"]: tool["input_schema"] for tool in body.get("tools") or []}
    match body.get("tool_choice"):
        case {"type": "any"}:
            prompt.choice = "required"
        case {"type": "tool", "name": name}:
            prompt.choice = f"={name}"
        case {"type": choice}:
            prompt.choice = choice
    prompt.schema = ((body.get("output_config") or {}).get("format") or {}).get("schema")
    prompt.stops = body.get("stop_sequences") or []
    prompt.reasons = thinking["type"] == "enabled"
    _must(not (prompt.reasons and prompt.choice not in {"auto", "none"}), "a forced call of a model that thinks")
    return _checked(prompt)


def _parts(content: Any, kind: str = "text") -> list[dict[str, Any]]:
    """The parts of a content, which may be absent, or a text instead of a part of this type."""
    return [{"type": kind, "text": content}] if isinstance(content, str) else content or []


def _chat_part(part: dict[str, Any], role: str) -> str:
    match part:
        case {"type": "text", "text": str(text)}:
            return text
        case {"type": "image_url", "image_url": {"url": url}} if role == "user":
            return _image(url)
        case {"type": "file", "file": {"file_data": data}} if role == "user":
            return _data(data, "application/pdf")
        case {"type": "input_audio", "input_audio": {"data": data, "format": "wav"}} if role == "user":
            return _data(f"data:audio/wav;base64,{data}", "audio/wav")
    raise Refusal(f"a part of the role {role}: {part}")


def _responses_part(part: dict[str, Any], role: str) -> str:
    match part:
        case {"type": "input_text", "text": str(text)} if role != "assistant":
            return text
        case {"type": "output_text", "text": str(text)} if role == "assistant":
            return text
        case {"type": "input_image", "image_url": url} if role == "user":
            return _image(url)
        case {"type": "input_file", "file_data": data} if role == "user":
            return _data(data, "application/pdf")
    raise Refusal(f"a part of the role {role}: {part}")


def _messages_part(part: dict[str, Any]) -> str:
    match part:
        case {"type": "text", "text": str(text)}:
            _must(text.strip() != "", "an empty text")
            return text
        case {"type": "image", "source": {"type": "url", "url": url}}:
            return _image(url)
        case {"type": "image" | "document", "source": {"type": "base64", "media_type": kind, "data": data}}:
            return _data(f"data:{kind};base64,{data}", kind)
        case {"type": "tool_use" | "thinking" | "redacted_thinking"}:
            return ""
        case {"type": "tool_result"}:
            for inner in _parts(part.get("content")):
                _messages_part(inner)
            return ""
    raise Refusal(f"a part: {part}")


def _image(url: str) -> str:
    if url.startswith("https://"):
        return ""
    return _data(url, url.partition(";")[0].removeprefix("data:"))


# The first bytes of files, by their type.
MAGIC = {"application/pdf": b"%PDF", "audio/wav": b"RIFF", "image/png": b"\x89PNG", "image/jpeg": b"\xff\xd8"}


def _data(url: str, kind: str) -> str:
    """Decodes a data URL of this type, which has no text."""
    head, _, data = url.partition(",")
    _must(kind in MAGIC and head == f"data:{kind};base64", f"{head} instead of {kind}")
    try:
        _must(base64.b64decode(data, validate=True).startswith(MAGIC[kind]), f"no file of the type {kind}")
    except binascii.Error as error:
        raise Refusal(str(error)) from error
    return ""


def _call(identity: str, arguments: Any) -> str:
    """The id of a call, whose arguments have to be an object."""
    arguments = json.loads(arguments) if isinstance(arguments, str) else arguments
    _must(isinstance(arguments, dict), f"arguments that are no object: {arguments}")
    return identity


def _checked(prompt: Prompt) -> Prompt:
    _must(prompt.text != "", "no message of the user")
    if prompt.choice not in {"auto", "none"}:
        _must(prompt.tools != {}, "a choice without tools")
    for name, schema in prompt.tools.items():
        _must((schema or {}).get("type") == "object", f"the arguments of {name} are no object: {schema}")
    return prompt


def _must(holds: bool, otherwise: str) -> None:
    if not holds:
        raise Refusal(otherwise)
