"""Why a request that fits every schema may still be refused: the closed list of the rules that no schema says.

Each reason names the sentences by which it is told and holds only where the request really breaks it.
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from models import is_relayed, is_served

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Body = dict[str, Any]


@dataclass(frozen=True)
class Finding:
    """What a refusal tells first: of which field, and what."""

    # Of the request.
    path: str
    place: tuple[str | int, ...]
    message: str

    @classmethod
    def of(cls, path: str, answer: dict[str, Any]) -> Finding:
        error = answer["error"]
        message = error["message"]
        # Messages has the field in the sentence.
        field = (error["param"] if "param" in error else message.partition(":")[0]) or ""
        return cls(path, tuple(steps(field)) if FIELD.fullmatch(field) else (), message)

    def is_about(self, place: Sequence[str | int]) -> bool:
        """Whether it is about the value at a place, about one within it, or about one that it is in."""
        shorter = min(len(place), len(self.place))
        return tuple(place[:shorter]) == self.place[:shorter]

    def value(self, body: Body) -> Any:
        return at(body, self.place)


@dataclass(frozen=True)
class Reason:
    """A rule beyond the schemas."""

    # Found in the sentence.
    told: str
    # Whether a request breaks it.
    breaks: Callable[[Finding, Body], bool]

    def explains(self, finding: Finding, body: Body) -> bool:
        return re.search(self.told, finding.message) is not None and self.breaks(finding, body)


def steps(path: str) -> list[str | int]:
    """The steps of a path in the form of OpenAI, `input[0].role`, or of Messages, `messages.0.role`."""
    return [int(step) if step.isdigit() else step for step in re.findall(r"[^.\[\]]+", path)]


def at(value: Any, place: Sequence[str | int]) -> Any:
    """The value at a place; None where there is none."""
    for step in place:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return None
    return value


def is_absent(finding: Finding, body: Body) -> bool:
    return finding.value(body) is None


def is_present(finding: Finding, body: Body) -> bool:
    return finding.value(body) is not None


def is_misspelled(finding: Finding, body: Body) -> bool:
    """Whether a member differs from a known one in case only: some servers take one for the other."""
    expected = re.search("expected '(?:stream_options[.])?([^']+)'", finding.message)
    names = [*body, *(body.get("stream_options") or {})]
    return expected is not None and any(
        name != expected[1] and name.casefold() == expected[1] for name in names
    )


def is_translated(finding: Finding, body: Body) -> bool:
    """Whether the model is embedded or behind another protocol, which may have no words for what is asked."""
    return not is_relayed(finding.path, body.get("model"))


def names_no_tool(_: Finding, body: Body) -> bool:
    """Whether the choice names a function that is not offered."""
    choice = body.get("tool_choice") or {}
    tools = body.get("tools") or []
    offered = {name_of(tool) for tool in tools}
    chosen = [choice, *(at(choice, ["tools"]) or at(choice, ["allowed_tools", "tools"]) or [])]
    return any(name_of(one) not in offered for one in chosen if isinstance(one, dict))


def name_of(tool: Any) -> Any:
    return at(tool, ["name"]) or at(tool, ["function", "name"]) or at(tool, ["custom", "name"])


def has_no_tools(_: Finding, body: Body) -> bool:
    return not body.get("tools")


def has_no_call(_: Finding, body: Body) -> bool:
    """Whether a result comes without the call before it."""
    called: set[Any] = set()
    for item in body.get("input") or body.get("messages") or []:
        if isinstance(item, dict):
            if answered(item) - called:
                return True
            called |= made(item)
    return False


def made(item: Body) -> set[Any]:
    """The ids of the calls in an item or a message."""
    inner = [*(item.get("tool_calls") or []), *blocks(item)]
    return {item.get("call_id")} | {at(call, ["id"]) for call in inner}


def answered(item: Body) -> set[Any]:
    """The ids of the calls whose results are in an item or a message."""
    own = item.get("call_id") if str(item.get("type")).endswith("_output") else item.get("tool_call_id")
    # An old kind of result has the name of its function alone.
    named = item.get("name") if item.get("role") == "function" else None
    return ({own, named} | {at(block, ["tool_use_id"]) for block in blocks(item)}) - {None}


def blocks(item: Body) -> list[Any]:
    content = item.get("content")
    return content if isinstance(content, list) else []


def is_other_picture(finding: Finding, body: Body) -> bool:
    """Whether an address or a file is not the picture that stands in the prompts."""
    value = finding.value(body)
    if value is None:
        # An address may stand bare in the place of its object.
        value = at(body, finding.place[:-1])
    pictures = value if isinstance(value, list) else [value]
    return any(isinstance(picture, str) and PIXEL not in picture for picture in pictures)


def is_no_base64(finding: Finding, body: Body) -> bool:
    value = finding.value(body)
    try:
        return isinstance(value, str) and not base64.b64decode(value, validate=True)
    except ValueError:
        return True


def is_unserved(finding: Finding, body: Body) -> bool:
    return finding.place[-1:] in UNSERVED and is_present(finding, body)


def is_left_out(finding: Finding, body: Body) -> bool:
    return finding.place[-1:] in NEEDED and is_absent(finding, body)


def is_served_elsewhere(finding: Finding, body: Body) -> bool:
    return not is_served(finding.path, body.get("model"))


def has_no_kind(finding: Finding, body: Body) -> bool:
    return at(finding.value(body), ["type"]) is None and at(finding.value(body), ["role"]) is None


def is_reference(item: Any) -> bool:
    return at(item, ["type"]) == "item_reference" or set(item or ()) == {"id"}


def begins_with_text(finding: Finding, body: Body) -> bool:
    """Whether a result of a tool comes behind a text of its message."""
    before = at(body, finding.place[:-1]) or []
    return any(at(block, ["type"]) == "text" for block in before[: finding.place[-1]])


def has_odd_names(_: Finding, body: Body) -> bool:
    """Whether the head of a part cannot hold the name of its field."""
    return not all(name.isprintable() for name in body)


def has_no_reference(_: Finding, body: Body) -> bool:
    return not body.get("images") and body.get("image") is None


FIELD = re.compile(r"[a-zA-Z_]\w*(\[\d+\]|\.\w+)*")
# A PNG of one black pixel.
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mNgAAAAAgAB5Sfe/AAAAABJRU5ErkJggg=="
# Fields that are known and not served, by their last name.
UNSERVED = {
    ("audio",),
    ("background",),
    ("conversation",),
    ("file_id",),
    ("function_call",),
    ("functions",),
    ("modalities",),
    ("previous_response_id",),
    ("prompt",),
    ("web_search_options",),
}
# Fields that are needed where others are not there.
NEEDED = {("content",), ("file_data",), ("image_url",)}
REASONS = [
    Reason("does not exist or you do not have access to it|is not served here|^model: ", is_served_elsewhere),
    Reason("^Unsupported value: '[^']+' does not support .+ with this model", is_translated),
    Reason("Names are compared as they are written", is_misspelled),
    Reason("at most 4 stop sequences", lambda _, body: len(body["stop_sequences"]) > 4),
    Reason("cannot be counted ahead", is_translated),
    Reason("There is nothing in the conversation that this model could answer", is_translated),
    Reason("Each turn of the user needs content for this model", is_translated),
    Reason(r"Only functions can be called by this model\b", is_translated),
    Reason("Missing required parameter: ", is_left_out),
    Reason(r"is not supported\b|does not support\b", is_unserved),
    # The simulator's, which reads no number with a fraction as a cap.
    Reason("^max_tokens: Field required$", lambda _, body: isinstance(body["max_tokens"], float)),
    Reason("'n' does not support", lambda _, body: body["n"] > 1),
    Reason("only allowed when 'logprobs' is enabled", lambda _, body: body.get("logprobs") is not True),
    Reason("at the same time is not supported", lambda _, body: body["max_tokens"] != body["max_completion_tokens"]),
    Reason("expected an array of objects, but got a string", lambda _, body: isinstance(body["input"], str)),
    Reason("expected an item with a 'type' or a 'role'", has_no_kind),
    Reason("^Previous response with id ", lambda _, body: isinstance(body["previous_response_id"], str)),
    Reason("^Item with id ", lambda _, body: any(is_reference(item) for item in body["input"])),
    Reason("no function named '[^']*' was specified in the 'tools' parameter", names_no_tool),
    Reason("'tool_choice' names a tool that this model cannot call", names_no_tool),
    Reason("tool_choice.name: expected the name of one of the tools", names_no_tool),
    Reason("'tool_choice' is only allowed when 'tools' are specified", has_no_tools),
    Reason("a tool must be called, but there are no tools", has_no_tools),
    Reason("No tool call found for ", has_no_call),
    Reason("The result of a tool has no call before it", has_no_call),
    Reason("tool_result blocks must come before the text of their message", begins_with_text),
    Reason("^Missing required parameter: 'images?'", has_no_reference),
    Reason("Expected a valid URL|Only HTTPS URLs are supported", is_other_picture),
    Reason("The image URL is not allowed", is_other_picture),
    Reason("unsupported mimetype", is_other_picture),
    Reason("expected base64 ", is_no_base64),
    Reason("JPEG has no transparency", lambda _, body: body["background"] == "transparent"),
    Reason("Invalid 'mask'", is_present),
    Reason("Could not parse multipart form", has_odd_names),
]
