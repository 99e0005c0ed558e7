"""What is changed of the requests before they go out, so that many of them are answered, and soon."""

from __future__ import annotations

import base64
import json
import os
import zlib
from collections import Counter
from typing import TYPE_CHECKING, Any

import schemathesis

if TYPE_CHECKING:
    from schemathesis import Case, HookContext, Response


@schemathesis.hook
def before_call(_context: HookContext, case: Case, _kwargs: dict[str, Any]) -> None:
    """Changes the body of a request; what is no object stays as it is."""
    if isinstance(case.body, dict):
        is_form = case.media_type == "multipart/form-data"
        case.body = tamed(case.operation.path + (FORM if is_form else ""), case.body)
        if answered[kind(case)] >= ANSWERS and "model" in case.body:
            case.body["model"] = ELSEWHERE


@schemathesis.hook
def after_call(_context: HookContext, case: Case, response: Response) -> None:
    """Counts the answers that a model had to write."""
    if response.status_code == 200 and case.operation.path not in CHEAP:
        answered[kind(case)] += 1


def kind(case: Case) -> tuple[str, str, bool]:
    """The operation and the phase of a request, and whether it asks for a stream."""
    phase = case.meta.phase.name if case.meta else ""
    return case.operation.label, phase, isinstance(case.body, dict) and case.body.get("stream") is True


def tamed(path: str, body: dict[str, Any]) -> dict[str, Any]:
    """The body with a short answer, small pictures and mostly a real model; often streamed, often with a plain prompt."""
    draw = Draw(body)
    body = {name: short(name, value, draw) for name, value in body.items()}
    if "model" in body and not draw.one_in(8):
        body["model"] = MODELS[path][draw.below(len(MODELS[path]))]
    if is_integer(body.get("top_logprobs")) and not draw.one_in(8):
        body["logprobs"] = True
    if path not in CHEAP and body.get("stream") in (None, False) and draw.one_in(3):
        body["stream"] = True
    cap = CAPS.get(path)
    if cap and not any(isinstance(body.get(name), int) for name in SHORTENED):
        body[cap] = MAX_TOKENS
    prompt = PROMPTS.get(path)
    if prompt and draw.one_in(2):
        body |= prompt
    return body


def short(name: str, value: Any, draw: Draw) -> Any:
    """A number or a size that takes little work; what is of another type stays, to be refused."""
    if name in SHORTENED and is_integer(value):
        return value if value < 0 and draw.one_in(8) else MAX_TOKENS
    if name == "n" and is_integer(value):
        return value if draw.one_in(8) else 2 if draw.one_in(8) else 1
    if name == "size" and isinstance(value, str):
        return value if draw.one_in(8) else SIZES[draw.below(len(SIZES))]
    return value


def is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


class Draw:
    """Numbers that depend on the body alone, so that the same seed gives the same requests."""

    def __init__(self, body: dict[str, Any]) -> None:
        self.state = zlib.crc32(json.dumps(body, sort_keys=True, default=repr).encode("utf-8", "surrogatepass"))

    def below(self, bound: int) -> int:
        self.state = zlib.crc32(self.state.to_bytes(4, "little"))
        return self.state % bound

    def one_in(self, bound: int) -> bool:
        return self.below(bound) == 0


# So many streams and so many plain replies of an operation are written in each phase. The requests that come after are
# read and judged as well, but ask for a model that is served nowhere.
ANSWERS = int(os.environ["SLUICEGATE_ANSWERS"])
ELSEWHERE = "model-none"
CHEAP = ("/v1/models", "/v1/models/{id}", "/v1/messages/count_tokens")
answered: Counter[tuple[str, str, bool]] = Counter()

# The embedded model writes some forty tokens a second.
MAX_TOKENS = 4
SHORTENED = ("max_tokens", "max_completion_tokens", "max_output_tokens")
# By which a request says how long its answer may be, when it does not have to.
CAPS = {"/v1/responses": "max_output_tokens", "/v1/chat/completions": "max_completion_tokens"}
SIZES = ("64x64", "64x96", "96x64")
# Stands behind the path of a request whose body is a form.
FORM = " as a form"
IMAGE_MODELS = ("model-image-2.5-flare", "model-image-2.5-sunburst")
MODELS = {
    "/v1/responses": ("alt-flash", "alt-flash", "model-5.5"),
    "/v1/chat/completions": ("alt-flash",),
    "/v1/messages": ("msg-sonnet-5",),
    "/v1/messages/count_tokens": ("msg-sonnet-5",),
    "/v1/images/generations": IMAGE_MODELS,
    "/v1/images/edits": IMAGE_MODELS,
    "/v1/images/edits" + FORM: IMAGE_MODELS,
}
TURN = [{"role": "user", "content": "Say hello."}]
# A PNG of one black pixel.
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mNgAAAAAgAB5Sfe/AAAAABJRU5ErkJggg=="
PROMPTS = {
    "/v1/responses": {"input": TURN},
    "/v1/chat/completions": {"messages": TURN},
    "/v1/messages": {"messages": TURN},
    "/v1/messages/count_tokens": {"messages": TURN},
    "/v1/images/edits": {"images": [{"image_url": f"data:image/png;base64,{PIXEL}"}]},
    "/v1/images/edits" + FORM: {"image": base64.b64decode(PIXEL)},
}
