"""The calls that ask for pictures, with what they ask for where a test does not say."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import openai
import pytest
from openai.types import ImagesResponse
from PIL import Image

from pictures import data_url, file_of, masking, scene

if TYPE_CHECKING:
    from openai import OpenAI

# A call that waits for its client, and for more arguments.
Call: TypeAlias = Callable[..., Any]

REFERENCE = file_of(scene())
OTHER = file_of(Image.new("RGB", (48, 48), (200, 30, 30)))
MASK = file_of(masking())
ASK: dict[str, Any] = {
    "model": "model-image-2.5-flare",
    "prompt": "A red circle above a blue sea.",
    "size": "1024x1024",
    "quality": "low",
    "extra_body": {"seed": 7},
}
# As large as the reference.
FITTING = {"prompt": "Paint it yellow.", "size": "auto"}


def generate(client: Any, **change: Any) -> Any:
    return client.images.generate(**ASK | change)


def edit(client: Any, **change: Any) -> Any:
    return client.images.edit(**ASK | {"image": REFERENCE} | change)


def edit_by_json(client: OpenAI, **change: Any) -> ImagesResponse:
    """The form of edits that the SDK has no method for."""
    ask = ASK | ASK["extra_body"] | {"extra_body": openai.omit, "images": [url_of(REFERENCE)]} | change
    body = {name: value for name, value in ask.items() if value is not openai.omit}
    return client.post("/images/edits", body=body, cast_to=ImagesResponse)


def url_of(file: bytes | None) -> dict[str, str] | None:
    """A file in the form for JSON."""
    return file and {"image_url": data_url(file)}


BOTH = pytest.mark.parametrize("call", [generate, edit])
BOTH_KINDS = pytest.mark.parametrize(("call", "kind"), [(generate, "image_generation"), (edit, "image_edit")])
