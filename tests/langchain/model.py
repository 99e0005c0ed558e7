"""A model that follows rules where LangChain's tests expect understanding.

It calls a tool if it has to, or if the question has a word of the tool's name and no tool has answered yet. Numbers and
names that the question quotes become the arguments. Other answers repeat the question.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from prompt import Prompt


@dataclass
class Answer:
    """An answer: a call or a text, with the reasoning before it."""

    text: str
    # The name of the tool and the arguments.
    call: tuple[str, Any] | None
    reasoning: str
    # The stop sequence that ends the text.
    stopped_by: str | None


def answer(prompt: Prompt) -> Answer:
    reasoning = "The user wants an answer." if prompt.reasons else ""
    if name := _tool(prompt):
        return Answer("", (name, fit(prompt.tools[name], prompt.text)), reasoning, None)
    text, stopped_by = _text(prompt), None
    for stop in prompt.stops:
        if stop in text:
            text, stopped_by = text.partition(stop)[0], stop
    return Answer(text, None, reasoning, stopped_by)


def pieces(text: str) -> list[str]:
    """The parts in which a text is streamed."""
    return re.findall(r".{1,6}", text, re.DOTALL)


def fit(schema: Any, question: str) -> Any:
    """A value that matches a simple schema, from what the question quotes."""
    if "anyOf" in schema:
        return fit(schema["anyOf"][0], question)
    match schema.get("type"):
        case "object":
            return {name: fit(member, question) for name, member in (schema.get("properties") or {}).items()}
        case "integer":
            return int(next(iter(re.findall(r"\d+", question)), "7"))
        case "string":
            return next(iter(re.findall("'(.+?)'", question)), question)
    raise NotImplementedError(schema)


def _tool(prompt: Prompt) -> str | None:
    """The tool to call."""
    if prompt.choice.startswith("="):
        return prompt.choice.removeprefix("=")
    if prompt.choice == "required":
        return next(iter(prompt.tools))
    if prompt.choice == "none" or prompt.is_answered:
        return None
    words = prompt.text.lower()
    return next((name for name in prompt.tools if any(word in words for word in name.lower().split("_"))), None)


def _text(prompt: Prompt) -> str:
    if prompt.schema is not None:
        return json.dumps(fit(prompt.schema, prompt.text))
    if "JSON" in prompt.text:
        return json.dumps(dict.fromkeys(re.findall(r"'(\w+)'", prompt.text), "A cat."))
    return f"I have read what you said: {prompt.text}"
