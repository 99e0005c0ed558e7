"""What is changed of the requests before they go out, so that most of them reach a model, and soon.

A random body is wrong in several ways at once. Where fields that are seldom right by chance are put right, what is
left decides: a request that is wrong in one place is refused for that, and one that is right is answered.
"""

from __future__ import annotations

import base64
import json
import os
import zlib
from collections import Counter
from typing import TYPE_CHECKING, Any

import schemathesis

import judging  # noqa: F401
from models import EMBEDDED, MODELS, is_relayed
from reasons import PIXEL

if TYPE_CHECKING:
    from schemathesis import Case, HookContext, Response

Body = dict[str, Any]


@schemathesis.hook
def before_call(_context: HookContext, case: Case, _kwargs: dict[str, Any]) -> None:
    """Changes the body of a request; what is no object stays as it is."""
    if isinstance(case.body, dict):
        path, draw = case.operation.path, Draw(case.body)
        form = FORM if case.media_type == "multipart/form-data" else ""
        if path in POSITIVE and phase(case) == "fuzzing" and case.body and draw.one_in(3):
            case.body = broken_within(case.body, draw)
        body = with_prompt(path + form, case.body, draw)
        body = tamed(path, body, draw)
        if isinstance(body.get("model"), str) and not draw.one_in(8):
            body = with_model(path, body, draw, may_take_time=answered[kind(case)] < ANSWERS)
        case.body = body


@schemathesis.hook
def after_call(_context: HookContext, case: Case, response: Response) -> None:
    """Counts the answers that an embedded engine had to write."""
    if response.status_code == 200 and isinstance(case.body, dict) and case.body.get("model") in EMBEDDED:
        answered[kind(case)] += 1


def kind(case: Case) -> tuple[str, str, bool]:
    """The operation and the phase of a request, and whether it asks for a stream."""
    return case.operation.label, phase(case), isinstance(case.body, dict) and case.body.get("stream") is True


def phase(case: Case) -> str:
    return case.meta.phase.name if case.meta else ""


def broken_within(value: Any, draw: Draw) -> Any:
    """The object or the list with one value of another type, at any depth."""
    value = value.copy()
    names = list(value if isinstance(value, dict) else range(len(value)))
    name = names[draw.below(len(names))]
    old = value[name]
    deeper = isinstance(old, dict | list) and old and not draw.one_in(3)
    value[name] = broken_within(old, draw) if deeper else ODD[draw.below(len(ODD))]
    return value


def with_prompt(path: str, body: Body, draw: Draw) -> Body:
    """The body, mostly with a plain prompt, now and then with that of a role that nobody knows."""
    for names, value in PROMPTS.get(path, ()):
        if not draw.one_in(4):
            plain = NOBODY if value is TURN and draw.one_in(32) else value
            body = {name: old for name, old in body.items() if name not in names} | {names[0]: plain}
    return body


def tamed(path: str, body: Body, draw: Draw) -> Body:
    """The body with fields that go together, sometimes streamed."""
    body = dict(body)
    if path not in CHEAP and body.get("stream") in (None, False) and draw.one_in(3):
        body["stream"] = True
    if is_integer(body.get("top_logprobs")) and not draw.one_in(8):
        body["logprobs"] = True
    if all(is_integer(body.get(name)) for name in CHAT_CAPS) and not draw.one_in(8):
        body["max_tokens"] = body["max_completion_tokens"]
    if isinstance(body.get("size"), str) and not draw.one_in(8):
        body["size"] = SIZES[draw.below(len(SIZES))]
    return body


def with_model(path: str, body: Body, draw: Draw, *, may_take_time: bool) -> Body:
    """The body for a real model: mostly for one at the simulator, which answers at once."""
    simulated, embedded = MODELS[path]
    if may_take_time and draw.one_in(4):
        return little(path, body) | {"model": embedded}
    body = body | {"model": simulated[draw.below(len(simulated))]}
    if not is_relayed(path, body["model"]) and not draw.one_in(8):
        body = {name: value for name, value in body.items() if name not in LOGPROBS}
    return body


def little(path: str, body: Body) -> Body:
    """The body with a short answer of few pictures; what is of another type stays, to be refused."""
    body = {name: short(name, value) for name, value in body.items()}
    cap = CAPS.get(path)
    if cap and not any(isinstance(body.get(name), int) for name in SHORTENED):
        body[cap] = MAX_TOKENS
    return body


def short(name: str, value: Any) -> Any:
    most = MAX_TOKENS if name in SHORTENED else 2 if name == "n" else None
    return most if most and is_integer(value) and value > most else value


def is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


class Draw:
    """Numbers that depend on the body alone, so that the same seed gives the same requests."""

    def __init__(self, body: Body) -> None:
        self.state = zlib.crc32(json.dumps(body, sort_keys=True, default=repr).encode("utf-8", "surrogatepass"))

    def below(self, bound: int) -> int:
        self.state = zlib.crc32(self.state.to_bytes(4, "little"))
        return self.state % bound

    def one_in(self, bound: int) -> bool:
        return self.below(bound) == 0


# So many streams and so many plain replies of an operation are written by an embedded engine in each phase.
ANSWERS = int(os.environ["SLUICEGATE_ANSWERS"])
CHEAP = ("/v1/models", "/v1/models/{id}", "/v1/messages/count_tokens")
# The operations for which the generator draws only right bodies when it draws at random: see `schemathesis.toml`.
POSITIVE = ("/v1/responses", "/v1/chat/completions", "/v1/messages", "/v1/messages/count_tokens")
ODD = (None, True, 0, -1, 0.5, 1 << 70, "", "x", [], [{}], {}, {"type": "x"})
answered: Counter[tuple[str, str, bool]] = Counter()

# The embedded model writes some forty tokens a second.
MAX_TOKENS = 4
SHORTENED = ("max_tokens", "max_completion_tokens", "max_output_tokens")
# Two names of one cap.
CHAT_CAPS = ("max_tokens", "max_completion_tokens")
# By which a request says how long its answer may be, when it does not have to.
CAPS = {"/v1/responses": "max_output_tokens", "/v1/chat/completions": "max_completion_tokens"}
SIZES = ("64x64", "64x96", "96x64", "auto")
# Behind another protocol than the client's nobody tells how likely a token was.
LOGPROBS = ("logprobs", "top_logprobs")
# Stands behind the path of a request whose body is a form.
FORM = " as a form"
TURN = [{"role": "user", "content": "Say hello."}]
NOBODY = [{"role": "nobody", "content": "Say hello."}]
SYSTEM = (("system",), "Be brief.")
PROMPT = (("prompt",), "A red circle.")
# What stands for the fields of a path that are seldom right by chance: the value goes to the first of the names.
PROMPTS = {
    "/v1/responses": [(("input",), TURN)],
    "/v1/chat/completions": [(("messages",), TURN)],
    "/v1/messages": [(("messages",), TURN), SYSTEM],
    "/v1/messages/count_tokens": [(("messages",), TURN), SYSTEM],
    "/v1/images/generations": [PROMPT],
    "/v1/images/edits": [PROMPT, (("images", "image", "mask"), [{"image_url": f"data:image/png;base64,{PIXEL}"}])],
    "/v1/images/edits" + FORM: [PROMPT, (("image", "image[]", "mask"), base64.b64decode(PIXEL))],
}
