"""Sample requests from the types of an SDK: together they have every member, every type and every word of a request."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import UnionType
from typing import TYPE_CHECKING, Any, Literal, Required, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel
from typing_extensions import is_typeddict

if TYPE_CHECKING:
    from collections.abc import Iterator

# A value, by the name of its member, where a server does not take any value of the type.
VALUES: dict[str, Any] = {
    "image_url": "https://example.com/a.png",
    "url": "https://example.com/a.png",
    "file_url": "https://example.com/a.pdf",
    "file_data": "data:application/pdf;base64,JVBERi0=",
    "data": "JVBERi0=",
    "name": "lookup",
    "budget_tokens": 1024,
    "tools": {"type": "web_search"},
}
# A type that is not valid with its required members alone gets these as well.
NEEDED: dict[str, dict[str, Any]] = {
    "ChatCompletionAssistantMessageParam": {"content": "Hi."},
    "ResponseInputImageParam": {"image_url": VALUES["image_url"]},
    "ResponseInputImageContentParam": {"image_url": VALUES["image_url"]},
    "ResponseInputFileParam": {"file_data": VALUES["file_data"]},
    "ResponseInputFileContentParam": {"file_data": VALUES["file_data"]},
}


class Samples:
    """The samples of one request type. In each of them one value differs from the shortest valid request."""

    def __init__(self) -> None:
        self._visited: set[type] = set()

    def of(self, hint: Any, name: str = "") -> Iterator[tuple[str, Any]]:
        """Values of a type, each with the path of what is special about it; the first is the shortest."""
        hint = _bare(hint)
        origin = get_origin(hint)
        if is_typeddict(hint):
            yield from self._objects(hint)
        elif origin is Literal:
            yield from ((f"={word}", word) for word in get_args(hint))
        elif origin in (Union, UnionType):
            for choice in get_args(hint):
                if not _is_reply(choice) and (choice is not type(None) or name not in VALUES):
                    yield from self.of(choice, name)
        elif origin in (list, Iterable, Sequence):
            yield from ((f"[]{path}", [value]) for path, value in self.of(get_args(hint)[0], name))
        elif origin is dict and name in VALUES:
            yield "", VALUES[name]
        elif origin is dict:
            yield from ((f".k{path}", {"k": value}) for path, value in self.of(get_args(hint)[1], name))
        else:
            yield "", _scalar(hint, name)

    def _objects(self, kind: type) -> Iterator[tuple[str, dict[str, Any]]]:
        hints = get_type_hints(kind, include_extras=True)
        shortest = {
            name: next(self.of(hint, name))[1] for name, hint in hints.items() if _is_required(hint)
        } | NEEDED.get(kind.__name__, {})
        yield "", shortest
        if kind in self._visited:
            return
        is_request = not self._visited
        self._visited.add(kind)
        for name, hint in hints.items():
            if is_request:
                # A type is sampled below each member of a request that has it.
                self._visited = {kind}
            member = _alias(hint) or name
            for path, value in self.of(hint, name):
                yield f".{member}{path}", shortest | {member: value}


def _bare(hint: Any) -> Any:
    """The type without the words around it."""
    while hasattr(hint, "__metadata__") or get_origin(hint) is Required:
        hint = hint.__origin__ if hasattr(hint, "__metadata__") else get_args(hint)[0]
    return hint


def _is_reply(hint: Any) -> bool:
    """True for a type of an answer: the SDKs accept these beside the types of requests with the same members."""
    choices = get_args(_bare(hint)) or (hint,)
    return any(isinstance(choice, type) and issubclass(choice, BaseModel) for choice in choices)


def _is_required(hint: Any) -> bool:
    while hasattr(hint, "__metadata__"):
        hint = hint.__origin__
    return get_origin(hint) is Required


def _alias(hint: Any) -> str | None:
    """The name of a member that is a word of Python."""
    if get_origin(hint) is Required:
        hint = get_args(hint)[0]
    names = (getattr(info, "alias", None) for info in getattr(hint, "__metadata__", ()))
    return next((name for name in names if name), None)


def _scalar(hint: Any, name: str) -> Any:
    if name in VALUES:
        return VALUES[name]
    return {str: "text", int: 1, float: 0.5, bool: True, object: {}, type(None): None}.get(hint, {})
