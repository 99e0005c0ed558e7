"""What is asked of each answer: a request that is wrong is refused for what is wrong with it, any other is answered."""

from __future__ import annotations

import base64
import copy
import json
import re
from collections import defaultdict
from dataclasses import dataclass
from email.parser import BytesParser
from email.policy import HTTP
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

import jsonschema_rs
import schemathesis

from known import KNOWN, KNOWN_FORM, RELAYED, RELAYED_FORM
from models import is_relayed
from reasons import REASONS, Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from schemathesis import Case, CheckContext, Response


@schemathesis.check
class RequestsAreJudged:
    """Every request with a JSON object or a form, in both directions."""

    def __init__(self, answered: int = 0, refused: int = 0) -> None:
        self.wanted = {"answered": answered, "refused": refused}
        self.seen: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))

    def after_response(self, _context: CheckContext, response: Response, case: Case) -> None:
        asked = Asked.of(response, case)
        if asked is None:
            return
        kind = "answered" if response.status_code == 200 else "refused"
        self.seen[asked.path][kind].add(json.dumps(asked.body, sort_keys=True, default=repr))
        if found := fault(asked, response):
            message = f"{found}\n{json.dumps(asked.body, default=repr)[:2000]}"
            raise AssertionError(message)

    def after_run(self, _context: CheckContext) -> None:
        """A run in which nothing was answered, or nothing refused, has judged nothing."""
        for path, seen in self.seen.items():
            for kind, wanted in self.wanted.items():
                assert len(seen[kind]) >= wanted, f"{path}: {len(seen[kind])} requests were {kind}, and not {wanted}"


def fault(asked: Asked, response: Response) -> str | None:
    """What is wrong with the answer."""
    status, wrong = response.status_code, asked.wrong
    if status == 200:
        return f"answered, though it is wrong: {wrong[0]}" if wrong else None
    if status >= 500:
        # Another check's.
        return None
    finding = Finding.of(asked.path, response.json())
    if status not in (400, 404):
        return f"refused with {status}: {finding.message}"
    if any(finding.is_about(place) for place, _ in wrong):
        return None
    if any(reason.explains(finding, asked.body) for reason in REASONS):
        return None
    return f"refused for what is not wrong with it: {finding.message!r}, and wrong is {wrong or 'nothing'}"


@dataclass(frozen=True)
class Asked:
    """A request whose head is right, so that its body decides."""

    path: str
    body: dict[str, Any]
    # The schemas that the body has to fit.
    schemas: tuple[str, ...]

    @classmethod
    def of(cls, response: Response, case: Case) -> Asked | None:
        request, path = response.request, case.operation.path
        kind = str(request.headers.get("Content-Type", ""))
        if path not in KNOWN or request.method != "POST" or response.status_code == 401:
            return None
        if kind == JSON:
            body = parsed(request.body)
            document = case.operation.schema.raw_schema
            content = document["paths"][path]["post"]["requestBody"]["content"][JSON]
            described = content["schema"] | {"components": document["components"]}
            known = RELAYED if is_relayed(path, model_of(body)) else KNOWN
            schemas = (json.dumps(known[path]), json.dumps(described))
        elif kind.startswith("multipart/form-data; boundary="):
            # What a form says is text, which the document's types say nothing of.
            body = of_form(kind, request.body)
            known = RELAYED_FORM if is_relayed(path, model_of(body)) else KNOWN_FORM
            schemas = (json.dumps(known),)
        else:
            return None
        return cls(path, body, schemas) if isinstance(body, dict) else None

    @cached_property
    def wrong(self) -> list[tuple[list[str | int], str]]:
        """What breaks the schemas, each with its place."""
        known, *described = self.schemas
        body = as_carried(self.path, self.body)
        found = [*errors(known, body)]
        for schema in described:
            found += [error for error in errors(schema, as_described(body)) if not self.is_unread(error[0])]
        return found

    def is_unread(self, place: list[str | int]) -> bool:
        """Whether a count of tokens does without the field: its document is that of a message."""
        return self.path == "/v1/messages/count_tokens" and place[:1] in UNREAD


def errors(schema: str, body: dict[str, Any]) -> Iterator[tuple[list[str | int], str]]:
    for error in validator(schema).iter_errors(body):
        place = list(error.instance_path)
        yield place, f"{place}: {error.message[:300]}"


@cache
def validator(schema: str) -> Any:
    return jsonschema_rs.Draft202012Validator(json.loads(schema))


def as_carried(path: str, body: dict[str, Any]) -> dict[str, Any]:
    """The body with known kinds in place of others, which an upstream of the path's own protocol interprets.

    These are the roles of messages, the kinds of their parts, the sources of images and documents, the choice of a
    tool, and the words of settings.
    """
    if not is_relayed(path, body.get("model")):
        return body
    body = copy.deepcopy(body)
    for turn in [*listed(body.get("input")), *listed(body.get("messages"))]:
        if isinstance(turn.get("role"), str) and turn["role"] not in ("", *ROLES):
            turn.clear()
            turn.update(role="user", content="a")
        carry_parts(turn, PARTS[path])
    if path in (MESSAGES, COUNT):
        carry_parts(body, PARTS[path])
    choice = body.get("tool_choice")
    if is_unknown(choice, CHOICES.get(path, ())) or any(is_unknown(tool, TOOLS) for tool in allowed(choice)):
        del body["tool_choice"]
    for place in WORDS.get(path, ()):
        carry_word(body, *place)
    if path in (GENERATIONS, EDITS) and is_integer(body.get("output_compression")):
        del body["output_compression"]
    return body


def carry_word(body: dict[str, Any], *place: str) -> None:
    """Removes a setting whose word only the upstream interprets; one with a type goes as a whole."""
    name, rest = place[0], place[1:]
    value = body.get(name)
    if isinstance(value, str) and value and not rest:
        del body[name]
    elif isinstance(value, dict) and rest == ("type",):
        if is_unknown(value, FORMS):
            del body[name]
    elif isinstance(value, dict) and rest:
        body[name] = dict(value)
        carry_word(body[name], *rest)


def carry_parts(holder: dict[str, Any], kinds: tuple[str, ...]) -> None:
    """Puts a text in place of each unknown part, and an address in place of each unknown source, at any depth."""
    for part in [*listed(holder.get("content")), *listed(holder.get("output")), *listed(holder.get("system"))]:
        if is_unknown(part, kinds):
            part.clear()
            part.update(type=kinds[0], text="a")
        if isinstance(part.get("detail"), str) and part["detail"]:
            del part["detail"]
        source = part.get("source")
        if is_unknown(source, SOURCES):
            part["source"] = {"type": "url", "url": "https://example.com/a.png"}
        elif isinstance(source, dict):
            carry_parts(source, kinds)
        carry_parts(part, kinds)


def is_unknown(value: Any, kinds: tuple[str, ...]) -> bool:
    """True for an object of another kind than these."""
    kind = value.get("type") if isinstance(value, dict) else None
    return isinstance(kind, str) and kind not in ("", *kinds)


def allowed(choice: Any) -> list[dict[str, Any]]:
    """The tools of a choice among some of them, in the form of either protocol."""
    if not isinstance(choice, dict):
        return []
    inner = choice.get("allowed_tools")
    return listed((inner if isinstance(inner, dict) else choice).get("tools"))


def as_described(body: dict[str, Any]) -> dict[str, Any]:
    """The body without what the document names the usual of alone.

    The state and the phase of a message are carried as they are; a call without a kind is one of a function.
    """
    body = copy.deepcopy(body)
    for turn in [*listed(body.get("input")), *listed(body.get("messages"))]:
        for word in ("phase", "status"):
            if isinstance(turn.get(word), str):
                del turn[word]
        for call in listed(turn.get("tool_calls")):
            call["type"] = call.get("type") or "function"
    return body


def is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def listed(value: Any) -> list[dict[str, Any]]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def model_of(body: Any) -> Any:
    return body.get("model") if isinstance(body, dict) else None


def parsed(body: Any) -> Any:
    try:
        return json.loads(body or b"")
    except ValueError:
        return None


def of_form(kind: str, body: bytes) -> dict[str, Any] | None:
    """The fields of a form as JSON would have them, files in lists; nothing where another field comes twice."""
    form = BytesParser(policy=HTTP).parsebytes(f"Content-Type: {kind}\r\n\r\n".encode() + body)
    fields: dict[str, Any] = {}
    for part in form.iter_parts():
        name = part.get_param("name", header="Content-Disposition").removesuffix("[]")
        payload = part.get_payload(decode=True) or b""
        if name in FILES:
            fields[name] = [*fields.get(name, []), base64.b64encode(payload).decode()]
        elif name in fields:
            return None
        # An empty text is none.
        elif payload:
            fields[name] = of_text(name, payload.decode(errors="replace"))
    return fields


def of_text(name: str, text: str) -> Any:
    if name in NUMBERS:
        return int(text) if re.fullmatch(r"-?\d+", text) else text
    return {"true": True, "1": True, "false": False, "0": False}.get(text, text) if name == "stream" else text


JSON = "application/json"
# The roles of all protocols.
ROLES = ("assistant", "developer", "function", "system", "tool", "user")
CHAT, MESSAGES, COUNT, RESPONSES = "/v1/chat/completions", "/v1/messages", "/v1/messages/count_tokens", "/v1/responses"
BLOCKS = ("text", "document", "image", "redacted_thinking", "thinking", "tool_result", "tool_use")
# The kinds that the gateway validates; the first of the parts is a text.
PARTS = {
    CHAT: ("text", "file", "image_url", "input_audio", "refusal"),
    MESSAGES: BLOCKS,
    COUNT: BLOCKS,
    RESPONSES: ("input_text", "input_audio", "input_file", "input_image", "output_text", "reasoning_text", "refusal"),
}
CHOICES = {
    CHAT: ("allowed_tools", "custom", "function"),
    MESSAGES: ("any", "auto", "none", "tool"),
    COUNT: ("any", "auto", "none", "tool"),
    RESPONSES: ("allowed_tools", "function"),
}
GENERATIONS, EDITS = "/v1/images/generations", "/v1/images/edits"
OF_MESSAGES = (
    ("thinking", "type"),
    ("thinking", "display"),
    ("output_config", "effort"),
    ("output_config", "format", "type"),
)
OF_IMAGES = (("quality",), ("background",), ("output_format",), ("response_format",))
# The settings whose words are not only those that the gateway knows.
WORDS = {
    CHAT: (("reasoning_effort",), ("response_format", "type")),
    MESSAGES: OF_MESSAGES,
    COUNT: OF_MESSAGES,
    RESPONSES: (
        ("truncation",),
        ("reasoning", "effort"),
        ("reasoning", "summary"),
        ("reasoning", "generate_summary"),
        ("text", "verbosity"),
        ("text", "format", "type"),
    ),
    GENERATIONS: OF_IMAGES,
    EDITS: OF_IMAGES,
}
# The types of formats and of ways to think.
FORMS = ("text", "json_object", "json_schema", "enabled", "disabled", "adaptive", "between_tools")
SOURCES = ("base64", "content", "text", "url")
TOOLS = ("allowed_tools", "custom", "function", "namespace")
UNREAD = [["max_tokens"], ["temperature"], ["top_k"], ["top_p"]]
# The fields of a form that are no text.
FILES = ("image", "mask")
NUMBERS = ("n", "output_compression", "partial_images", "seed")
