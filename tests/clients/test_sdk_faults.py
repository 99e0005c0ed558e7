"""The official SDKs behind a gateway whose upstreams fail: they raise, or hand out the event that says so.

The simulator draws each fault and its place by a seed, and knows whether anything of the answer is lost with it. What
an SDK hands out as a success has to be the whole answer, and where something is lost it hands out none.
"""

from __future__ import annotations

import base64
import hashlib
import os
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import anthropic
import openai
import pytest

from gateway import running
from simulator import faults, simulating

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from anthropic import Anthropic
    from openai import OpenAI

SEEDS = int(os.environ.get("SLUICEGATE_SDK_FAULTS", "100"))
SAID = "Hello, you there."
HONEST = f"You said: {SAID}"
TURNS = [{"role": "user", "content": SAID}]


class FailureToldError(Exception):
    """The last event of a stream says that it failed."""


class EndMissingError(Exception):
    """A stream ended as if all was well, and without its last event."""


@dataclass(frozen=True)
class Lane:
    """A client of one protocol, and what its upstreams speak: seed by seed the next of them."""

    upstreams: list[str]
    family: str
    ask: Callable[[OpenAI, Anthropic, str, int], str]


def test_an_sdk_takes_no_failure_for_a_success(lane: Lane, tmp_path: Path) -> None:
    drawn = faults(SEEDS)
    with (
        simulating() as base_url,
        running(tmp_path, config(lane, base_url)) as gateway,
        ThreadPoolExecutor(16) as pool,
    ):

        def outcome(seed: int) -> str:
            # Clients of its own: collected while others ask, a stream that was left can lock a shared pool for good.
            with gateway.openai(KEY, **OPTIONS) as of_openai, gateway.anthropic(KEY, **OPTIONS) as of_anthropic:
                return answer(of_openai, of_anthropic, seed)

        def answer(of_openai: OpenAI, of_anthropic: Anthropic, seed: int) -> str:
            try:
                return lane.ask(of_openai, of_anthropic, f"model-{seed}", seed)
            except (openai.OpenAIError, anthropic.AnthropicError, FailureToldError) as error:
                return f"raised {type(error).__name__}"
            except EndMissingError as error:
                return f"without an end: {error}"

        outcomes = list(pool.map(outcome, range(SEEDS)))
    wrong, counts = [], Counter[str]()
    for seed, (told, fault) in enumerate(zip(outcomes, drawn, strict=True)):
        name, loses = fault[streams(seed)]
        is_failure = told.startswith("raised ")
        counts[told if is_failure else "whole"] += 1
        if not is_failure and (loses or told != HONEST):
            wrong.append(f"seed {seed}, {name}, {lane.upstreams[seed % len(lane.upstreams)]}: {told[:200]!r}")
    assert wrong == []
    assert counts["whole"] > 0, "some faults lose nothing"
    assert counts.total() - counts["whole"] > SEEDS / 2, "most of them lose something"


def streams(seed: int) -> bool:
    """Whether a stream is asked for under this seed."""
    return seed // 3 % 4 != 0


def by_helper(seed: int) -> bool:
    """Whether a stream is read by the SDK's own accumulator, and not event by event."""
    return seed // 12 % 2 == 0


def ask_responses(client: OpenAI, _: Anthropic, model: str, seed: int) -> str:
    if not streams(seed):
        return of_response(client.responses.create(model=model, input=SAID))
    if by_helper(seed):
        with client.responses.stream(model=model, input=SAID) as stream:
            for event in stream:
                failing(event)
            return of_response(stream.get_final_response())
    last = None
    for last in client.responses.create(model=model, input=SAID, stream=True):
        failing(last)
    if last is None or last.type != "response.completed":
        raise EndMissingError(repr(last))
    return of_response(last.response)


def failing(event: Any) -> None:
    if event.type in ("response.failed", "error"):
        raise FailureToldError


def of_response(response: Any) -> str:
    if response.status == "failed":
        raise FailureToldError
    return response.output_text if response.status == "completed" else f"{response.status}"


def ask_chat(client: OpenAI, _: Anthropic, model: str, seed: int) -> str:
    if not streams(seed):
        return of_completion(client.chat.completions.create(model=model, messages=TURNS))
    if by_helper(seed):
        with client.chat.completions.stream(model=model, messages=TURNS) as stream:
            for _event in stream:
                pass
            return of_completion(stream.get_final_completion())
    text, finish = "", None
    for chunk in client.chat.completions.create(model=model, messages=TURNS, stream=True):
        for choice in chunk.choices:
            text += choice.delta.content or ""
            finish = choice.finish_reason or finish
    if finish is None:
        raise EndMissingError(text)
    return text if finish == "stop" else finish


def of_completion(completion: Any) -> str:
    [choice] = completion.choices
    return choice.message.content if choice.finish_reason == "stop" else f"{choice.finish_reason}"


def ask_messages(_: OpenAI, client: Anthropic, model: str, seed: int) -> str:
    body = {"model": model, "messages": TURNS, "max_tokens": 512}
    if not streams(seed):
        return of_message(client.messages.create(**body))
    if by_helper(seed):
        with client.messages.stream(**body) as stream:
            for _event in stream:
                pass
            return of_message(stream.get_final_message())
    text, last = "", None
    for last in client.messages.create(**body, stream=True):
        if last.type == "content_block_delta":
            text += last.delta.text
    if last is None or last.type != "message_stop":
        raise EndMissingError(text)
    return text


def of_message(message: Any) -> str:
    [block] = message.content
    return block.text if message.stop_reason == "end_turn" else f"{message.stop_reason}"


def ask_images(client: OpenAI, _: Anthropic, model: str, seed: int) -> str:
    # A small reply is read by the gateway before it goes on, a large one passes.
    is_large = not streams(seed) and by_helper(seed)
    size, output_format = ("1280x1024", "jpeg") if is_large else ("64x64", "png")
    body = {"model": model, "prompt": SAID, "size": size, "output_format": output_format}
    if not streams(seed):
        reply = client.images.generate(**body)
        return HONEST if reply.data and all(whole(picture.b64_json) for picture in reply.data) else "no picture"
    last = None
    for last in client.images.generate(**body, stream=True, partial_images=2):
        pass
    if last is None or last.type != "image_generation.completed":
        raise EndMissingError(repr(last)[:200])
    return HONEST if whole(last.b64_json) else "half a picture"


def whole(b64: str | None) -> bool:
    """Whether it is a picture to its last byte."""
    return base64.b64decode(b64 or "").endswith((b"IEND\xaeB\x60\x82", b"\xff\xd9"))


TEXT = ["responses", "chat", "messages"]
LANES = {
    "responses": Lane(TEXT, "text", ask_responses),
    "chat": Lane(TEXT, "text", ask_chat),
    "messages": Lane(TEXT, "text", ask_messages),
    "images": Lane(["images"], "images", ask_images),
}


@pytest.fixture(params=LANES)
def lane(request: pytest.FixtureRequest) -> Lane:
    return LANES[request.param]


def config(lane: Lane, base_url: str) -> str:
    """A model and an upstream for each seed, so that no breaker opens for what another one did."""
    protocols = lane.upstreams if lane.family == "text" else ["images_generations"]
    lines = [
        "[limits]",
        'request_timeout = "8s"',
        "[[keys]]",
        'name = "faults"',
        f'hash = "sha256:{hashlib.sha256(KEY.encode()).hexdigest()}"',
        'scopes = ["text", "messages", "images"]',
    ]
    for seed in range(SEEDS):
        lines += ["[[upstreams]]", f'name = "upstream-{seed}"', f'base_url = "{base_url}"', *HASTY]
        lines += [f'protocol = "{lane.upstreams[seed % len(lane.upstreams)]}"']
    for seed in range(SEEDS):
        lines += ["[[models]]", f'id = "model-{seed}"', f'family = "{lane.family}"', f"protocols = {protocols}"]
        lines += [f'targets = [{{ upstream = "upstream-{seed}", model = "fault-{seed}" }}]']
        lines += ["string_input = true"] * (lane.family == "text")
    return "\n".join(lines)


KEY = "sg_test_upstreams_key_00000000000000000"
# As users have them.
OPTIONS: dict[str, Any] = {"_strict_response_validation": False}
# Soon, and not before a busy machine has begun.
HASTY = ['head_timeout = "2s"', 'event_idle = "2s"']
