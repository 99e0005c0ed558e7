"""The gateways of a run, by what answers behind them: the embedded engines, or simulated upstreams of one protocol.

A test that needs a gateway runs behind each of the backends that its marker `behind` names. A simulated upstream
answers within milliseconds, so everything but the content of an answer is tested there; the embedded engines, which
take seconds, answer what only a real model shows. The rest of what they can be asked runs every night.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import pytest

from gateway import IMAGE_KEY, TEXT_KEY, Gateway, running
from simulator import simulating

if TYPE_CHECKING:
    from collections.abc import Iterable
    from contextlib import ExitStack

    from anthropic import Anthropic
    from openai import OpenAI

# The catalog and both engines of a gateway without a configuration.
EMBEDDED = "embedded"
# The same catalog, whose text models are at upstreams that speak this protocol.
SIMULATED = ("responses", "chat", "messages")

# Everywhere; behind the embedded engines every night only.
SHAPE = pytest.mark.behind(*SIMULATED, long=[EMBEDDED])
# Behind the embedded engines in both tiers, and behind the upstreams.
ANSWER = pytest.mark.behind(EMBEDDED, *SIMULATED)
# Behind the embedded engines alone: what an answer says, or a promise that upstreams do not make.
MODEL = pytest.mark.behind(EMBEDDED)
# Requests that are answered before any model is asked.
GATE = pytest.mark.behind(EMBEDDED, "messages")
# Pictures of either engine; whatever its text models are behind, a simulated backend has its images at Images.
PICTURE = pytest.mark.behind(EMBEDDED, "messages")


def params(*short: str, long: Iterable[str] = ()) -> list[object]:
    """Parameters for the backends that a marker `behind` names, each with the markers of what runs behind it."""
    return [param(name) for name in short] + [param(name, pytest.mark.long) for name in long]


def param(name: str, *marks: pytest.MarkDecorator) -> object:
    return pytest.param(name, marks=[*marks, *[pytest.mark.embedded] * (name == EMBEDDED)])


class Backend:
    """A gateway that is started when it is first needed, and the clients of it that tests share."""

    def __init__(self, name: str, stack: ExitStack, folders: pytest.TempPathFactory, base_url: str | None) -> None:
        self.name = name
        self._stack = stack
        self._folders = folders
        self._base_url = base_url

    @cached_property
    def gateway(self) -> Gateway:
        config = None if self._base_url is None else catalog(self.name, self._base_url)
        return self._stack.enter_context(running(self._folders.mktemp(self.name), config))

    @cached_property
    def openai(self) -> OpenAI:
        return self._stack.enter_context(self.gateway.openai(TEXT_KEY))

    @cached_property
    def images(self) -> OpenAI:
        return self._stack.enter_context(self.gateway.openai(IMAGE_KEY))

    @cached_property
    def lenient_images(self) -> OpenAI:
        return self._stack.enter_context(self.gateway.openai(IMAGE_KEY, _strict_response_validation=False))

    @cached_property
    def anthropic(self) -> Anthropic:
        return self._stack.enter_context(self.gateway.anthropic())


class Backends:
    """The backends of a run."""

    def __init__(self, stack: ExitStack, folders: pytest.TempPathFactory) -> None:
        self._stack = stack
        self._folders = folders
        self._started: dict[str, Backend] = {}

    def __getitem__(self, name: str) -> Backend:
        if name not in self._started:
            base_url = None if name == EMBEDDED else self.base_url
            self._started[name] = Backend(name, self._stack, self._folders, base_url)
        return self._started[name]

    @cached_property
    def base_url(self) -> str:
        """The simulator's."""
        return self._stack.enter_context(simulating())


def catalog(protocol: str, base_url: str, target: str = "theirs") -> str:
    """The built-in models, at upstreams that know them as `target`; answers are kept as without a configuration."""
    lines = ["[responses]", 'keep = "1h"']
    for name in (protocol, "images"):
        lines += ["[[upstreams]]", f'name = "{name}"', f'protocol = "{name}"', f'base_url = "{base_url}"']
    for family, models in MODELS.items():
        for model, (protocols, *rules) in models.items():
            upstream = "images" if family == "images" else protocol
            lines += ["[[models]]", f'id = "{model}"', f'family = "{family}"', f"protocols = {protocols}"]
            lines += [f'targets = [{{ upstream = "{upstream}", model = "{target}" }}]']
            lines += [f"{rule} = true" for rule in rules]
    return "\n".join(lines)


# The built-in catalog by families: where each model is served, and the rules that it bends.
MODELS: dict[str, dict[str, list[object]]] = {
    "text": {
        **{f"model-{name}": [["responses"]] for name in ("6-astra", "5.6-terra", "5.6-sol", "5.6-luna", "5.5")},
        "alt-flash": [["responses", "chat"], "string_input", "reasoning"],
    },
    "messages": {"msg-sonnet-5": [["messages"]]},
    "images": {
        "model-image-2.5-sunburst": [["images_generations", "images_edits"]],
        "model-image-2.5-flare": [["images_generations", "images_edits"]],
        "model-image-2": [["images_generations"]],
    },
}
