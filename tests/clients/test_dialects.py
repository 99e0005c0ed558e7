"""The official SDKs read every answer of real servers that is whole or incomplete, in every protocol, streamed or not.

What a client of another protocol than the server's gets is written by the gateway: it has to pass the strict reading
of the SDK. A client of the server's protocol gets the server's own members, which the SDK reads as users have it.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from dialects import BY_NAME, TEXT, Case, playing
from gateway import Gateway, running
from reading import READERS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from anthropic import Anthropic
    from openai import OpenAI


@dataclass(frozen=True)
class Visit:
    """A case as one client asks for it: `plain`, event by event (`stream`), or by the SDK's accumulator (`helper`)."""

    case: Case
    client: str
    form: str

    @property
    def name(self) -> str:
        return f"{self.case.name} {self.client} {self.form}"

    @property
    def is_relayed(self) -> bool:
        return self.client == self.case.protocol

    @property
    def model(self) -> str:
        return self.case.model

    @property
    def owed(self) -> dict[str, Any]:
        return self.case.owed(self.client, "plain" if self.form == "plain" else "stream")


def visits() -> Iterator[Visit]:
    for case in BY_NAME.values():
        for client in case.clients:
            for form in [form for mode in case.modes for form in FORMS[mode] if (client, form) in READERS]:
                visit = Visit(case, client, form)
                if visit.owed["outcome"] in ANSWERS:
                    yield visit


@pytest.fixture(scope="module")
def dialects(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway with a model and an upstream for each case."""
    with playing() as address, running(tmp_path_factory.mktemp("dialects"), config(address)) as gateway:
        yield gateway


@pytest.fixture(scope="module")
def clients(dialects: Gateway) -> Iterator[dict[tuple[bool, bool], OpenAI | Anthropic]]:
    """The SDKs, by whether it is that of Messages, and whether it is strict."""
    options: dict[bool, dict[str, Any]] = {True: {}, False: {"_strict_response_validation": False}}
    made = {(False, is_strict): dialects.openai(KEY, **options[is_strict]) for is_strict in options}
    made |= {(True, is_strict): dialects.anthropic(KEY, **options[is_strict]) for is_strict in options}
    yield made
    for client in made.values():
        client.close()


def config(address: str) -> str:
    lines = [
        "[[keys]]",
        'name = "dialects"',
        f'hash = "sha256:{hashlib.sha256(KEY.encode()).hexdigest()}"',
        'scopes = ["text", "messages", "images"]',
    ]
    texts = [case for case in BY_NAME.values() if case.protocol != "images"]
    for case in BY_NAME.values():
        lines += ["[[upstreams]]", f'name = "{case.model}"', f'protocol = "{case.protocol}"']
        lines += [f'base_url = "{address}/{case.name}/v1"']
    for case in BY_NAME.values():
        is_text = case in texts
        lines += ["[[models]]", f'id = "{case.model}"', f'family = "{"text" if is_text else "images"}"']
        lines += [f"protocols = {TEXT if is_text else ['images_generations']}"]
        lines += [f'targets = [{{ upstream = "{case.model}" }}]']
    return "\n".join(lines)


def request(visit: Visit) -> dict[str, Any]:
    """A request with the tools that the answer calls, and for thoughts where it has some."""
    body: dict[str, Any] = {"model": visit.model} | BODIES[visit.client]
    if names := sorted({call["name"] for call in visit.owed.get("calls", [])}):
        body["tools"] = [TOOLS[visit.client](name) for name in names]
    if "reasoning" in visit.owed:
        body |= REASONING[visit.client]
    return body


ANSWERS = ("complete", "incomplete")
FORMS = {"plain": ["plain"], "stream": ["stream", "helper"]}
TURNS = [{"role": "user", "content": "Hello."}]
BODIES: dict[str, dict[str, Any]] = {
    "responses": {"input": TURNS},
    "chat": {"messages": TURNS},
    "messages": {"messages": TURNS, "max_tokens": 512},
    "images": {"prompt": "Hello.", "size": "64x64"},
}
SCHEMA = {"type": "object"}
TOOLS: dict[str, Callable[[str], dict[str, Any]]] = {
    "responses": lambda name: {"type": "function", "name": name, "parameters": SCHEMA, "strict": False},
    "chat": lambda name: {"type": "function", "function": {"name": name, "parameters": SCHEMA}},
    "messages": lambda name: {"name": name, "input_schema": SCHEMA},
}
REASONING: dict[str, dict[str, Any]] = {
    "responses": {"reasoning": {"effort": "low", "summary": "auto"}},
    "chat": {"reasoning_effort": "low"},
    "messages": {"thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 4096},
}
KEY = "sg_test_dialects_key_000000000000000000"


@pytest.mark.parametrize("visit", [pytest.param(visit, id=visit.name) for visit in visits()])
def test_an_sdk_reads_what_is_owed(clients: dict[tuple[bool, bool], Any], visit: Visit) -> None:
    client = clients[visit.client == "messages", not visit.is_relayed]
    answer = READERS[visit.client, visit.form](client, request(visit))
    owed = visit.owed
    ends = {owed.get("reason", "complete")}
    if visit.is_relayed and "word" in owed:
        ends.add(owed["word"])
    assert answer.end in ends
    if "text" in owed:
        assert answer.text == owed["text"]
    if owed["outcome"] == "complete":
        wanted = [(call["name"], json.loads(call["arguments"])) for call in owed.get("calls", [])]
        assert [(name, json.loads(arguments)) for name, arguments in answer.calls] == wanted
