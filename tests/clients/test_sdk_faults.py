"""The official SDKs behind a gateway whose upstreams fail: they raise, or hand out the event that says so.

The simulator draws each fault and its place by a seed, and knows whether anything of the answer is lost with it. What
an SDK hands out as a success has to be the whole answer, and where something is lost it hands out none. The seed of the
run chooses the faults: runs whose seeds are neighbours have none in common.
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

from gateway import Gateway, running
from seed import SEED
from simulator import Fault, faults, simulating

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import ModuleType

    from anthropic import Anthropic
    from openai import OpenAI

COUNT = int(os.environ.get("SLUICEGATE_SDK_FAULTS", "100"))
SAID = "Hello, you there."
HONEST = f"You said: {SAID}"
TURNS = [{"role": "user", "content": SAID}]


class FailureToldError(Exception):
    """The last event of a stream says that it failed."""


class EndMissingError(Exception):
    """A stream ended as if all was well, and without its last event."""


@dataclass(frozen=True)
class Lane:
    """A client of one protocol, and what its upstreams speak: fault by fault the next of them."""

    upstreams: list[str]
    family: str
    sdk: ModuleType
    ask: Callable[[Any, str, int], str]

    def upstream(self, number: int) -> str:
        return self.upstreams[number % len(self.upstreams)]

    def client(self, gateway: Gateway) -> OpenAI | Anthropic:
        # To load the certificates that the system trusts takes longer than most answers, and none are asked for here.
        transport = self.sdk.DefaultHttpxClient(verify=False)
        make = gateway.openai if self.sdk is openai else gateway.anthropic
        return make(KEY, http_client=transport, **OPTIONS)


def test_an_sdk_takes_no_failure_for_a_success(lane: Lane, tmp_path: Path) -> None:
    drawn = faults((SEED - 1) * COUNT % (1 << 64), COUNT)
    with (
        simulating() as base_url,
        running(tmp_path, config(lane, base_url, drawn)) as gateway,
        ThreadPoolExecutor(THREADS) as pool,
    ):

        def outcome(number: int) -> str:
            # A client of its own: collected while others ask, a stream that was left can lock a shared pool for good.
            with lane.client(gateway) as client:
                return answer(client, number)

        def answer(client: OpenAI | Anthropic, number: int) -> str:
            try:
                return lane.ask(client, f"model-{number}", number)
            except (openai.OpenAIError, anthropic.AnthropicError, FailureToldError) as error:
                return f"raised {type(error).__name__}"
            except EndMissingError as error:
                return f"without an end: {error}"

        outcomes = list(pool.map(outcome, range(COUNT)))
    wrong, counts = [], Counter[str]()
    for number, (told, fault) in enumerate(zip(outcomes, drawn, strict=True)):
        name, loses = fault.acts[streams(number)]
        is_failure = told.startswith("raised ")
        counts[told if is_failure else "whole"] += 1
        if not is_failure and (loses or told != HONEST):
            wrong.append(f"{fault.model}, {name}, {lane.upstream(number)}: {told[:200]!r}")
    assert wrong == [], f"drawn by the seed {SEED}"
    assert counts["whole"] > 0, "some faults lose nothing"
    assert counts.total() - counts["whole"] > COUNT / 2, "most of them lose something"


def streams(number: int) -> bool:
    """Whether a stream is asked for when the fault of this number comes."""
    return number // 3 % 4 != 0


def by_helper(number: int) -> bool:
    """Whether a stream is read by the SDK's own accumulator, and not event by event."""
    return number // 12 % 2 == 0


def ask_responses(client: OpenAI, model: str, number: int) -> str:
    if not streams(number):
        return of_response(client.responses.create(model=model, input=SAID))
    if by_helper(number):
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


def ask_chat(client: OpenAI, model: str, number: int) -> str:
    if not streams(number):
        return of_completion(client.chat.completions.create(model=model, messages=TURNS))
    if by_helper(number):
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


def ask_messages(client: Anthropic, model: str, number: int) -> str:
    body = {"model": model, "messages": TURNS, "max_tokens": 512}
    if not streams(number):
        return of_message(client.messages.create(**body))
    if by_helper(number):
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


def ask_images(client: OpenAI, model: str, number: int) -> str:
    # A small reply is read by the gateway before it goes on, a large one passes.
    is_large = not streams(number) and by_helper(number)
    size, output_format = ("1280x1024", "jpeg") if is_large else ("64x64", "png")
    body = {"model": model, "prompt": SAID, "size": size, "output_format": output_format}
    if not streams(number):
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
    "responses": Lane(TEXT, "text", openai, ask_responses),
    "chat": Lane(TEXT, "text", openai, ask_chat),
    "messages": Lane(TEXT, "text", anthropic, ask_messages),
    "images": Lane(["images"], "images", openai, ask_images),
}


@pytest.fixture(params=LANES)
def lane(request: pytest.FixtureRequest) -> Lane:
    return LANES[request.param]


def config(lane: Lane, base_url: str, drawn: list[Fault]) -> str:
    """A model and an upstream for each fault, so that no breaker opens for what another one did."""
    protocols = lane.upstreams if lane.family == "text" else ["images_generations"]
    lines = [
        "[limits]",
        'request_timeout = "4s"',
        'stream_timeout = "4s"',
        "[[keys]]",
        'name = "faults"',
        f'hash = "sha256:{hashlib.sha256(KEY.encode()).hexdigest()}"',
        'scopes = ["text", "messages", "images"]',
    ]
    for number in range(len(drawn)):
        lines += ["[[upstreams]]", f'name = "upstream-{number}"', f'base_url = "{base_url}"', *HASTY]
        lines += [f'protocol = "{lane.upstream(number)}"']
    for number, fault in enumerate(drawn):
        lines += ["[[models]]", f'id = "model-{number}"', f'family = "{lane.family}"', f"protocols = {protocols}"]
        lines += [f'targets = [{{ upstream = "upstream-{number}", model = "{fault.model}" }}]']
        lines += ["string_input = true"] * (lane.family == "text")
    return "\n".join(lines)


KEY = "sg_test_upstreams_key_00000000000000000"
# As users have them.
OPTIONS: dict[str, Any] = {"_strict_response_validation": False}
# Much of the time is waiting for silent upstreams.
THREADS = 32
# Soon. Where a busy machine takes longer to answer it is one more failure, which the SDK has to raise too.
HASTY = ['head_timeout = "500ms"', 'event_idle = "500ms"']
