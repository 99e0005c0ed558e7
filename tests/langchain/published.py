"""The published schemas of the protocols, which llm-comply brings with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import llm_comply
from llm_comply.schema import SpecLoader

FOLDER = Path(llm_comply.__file__).parent / "specs"
# By the names of llm-comply.
SPECS = {
    "openai-chat": SpecLoader(str(FOLDER / "openai_chat.json")),
    "open-responses": SpecLoader(str(FOLDER / "openresponses.json")),
    "anthropic": SpecLoader(str(FOLDER / "anthropic.json")),
}


def problems_of_chat(body: dict[str, Any]) -> list[str]:
    # llm-comply does not read `nullable` beside alternatives.
    messages = [{name: value for name, value in message.items() if value is not None} for message in body["messages"]]
    return SPECS["openai-chat"].validate(body | {"messages": messages}, "CreateChatCompletionRequest")


def problems_of_responses(body: dict[str, Any]) -> list[str]:
    # OpenAI has a format that Open Responses does not have.
    if body.get("text") == {"format": {"type": "json_object"}}:
        body = {name: value for name, value in body.items() if name != "text"}
    return SPECS["open-responses"].validate(body, "CreateResponseBody")


def problems_of_messages(body: dict[str, Any]) -> list[str]:
    return SPECS["anthropic"].validate(body, "CreateMessageParams")
