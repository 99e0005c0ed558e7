"""Pictures to send, and what is held against the pictures that come back. Pillow reads them, not the gateway's code."""

from __future__ import annotations

import base64
import uuid
from io import BytesIO
from typing import TYPE_CHECKING, Any, Protocol

from openai import omit
from PIL import Image

if TYPE_CHECKING:
    from collections.abc import Sequence

    from openai.types import ImagesResponse
    from pydantic import BaseModel

SIZE = (96, 64)
HOLE = (24, 16, 72, 48)


class Told(Protocol):
    """What a reply, and every event of a stream, tells of its pictures."""

    size: str
    quality: str
    background: str
    output_format: str


def scene(size: tuple[int, int] = SIZE) -> Image.Image:
    """A picture whose neighbouring pixels all differ, though not by much."""
    width, height = size
    ramp = Image.linear_gradient("L")
    bands = (ramp.resize(size), ramp.rotate(90).resize(size), Image.new("L", size, 90))
    picture = Image.merge("RGB", bands)
    picture.putpixel((width - 1, height - 1), (255, 0, 0))
    return picture


def masking(size: tuple[int, int] = SIZE, hole: tuple[int, int, int, int] = HOLE) -> Image.Image:
    """A mask that is transparent in the hole, where the edit applies."""
    mask = Image.new("RGBA", size, (0, 0, 0, 255))
    mask.paste((0, 0, 0, 0), hole)
    return mask


def file_of(picture: Image.Image, encoding: str = "png", **options: Any) -> bytes:
    file = BytesIO()
    picture.save(file, encoding, **options)
    return file.getvalue()


def data_url(file: bytes, encoding: str = "png") -> str:
    return f"data:image/{encoding};base64,{base64.b64encode(file).decode()}"


def case_name(ask: Any) -> str | None:
    """The name of a case that asks for this: its values, cut where they are long."""
    if isinstance(ask, dict):
        return " ".join(f"{name}={value!s:.24}" for name, value in ask.items() if value is not omit)
    return None


def picture_in(b64_json: str) -> Image.Image:
    """The decoded picture; base64 must be the standard alphabet with its padding."""
    picture = Image.open(BytesIO(base64.b64decode(b64_json, validate=True)))
    picture.load()
    return picture


def check_picture(b64_json: str, told: Told) -> Image.Image:
    """The decoded picture, which is what is told of it."""
    picture = picture_in(b64_json)
    assert told.output_format == picture.format.lower()
    assert told.size == "x".join(map(str, picture.size))
    assert told.background == ("transparent" if picture.has_transparency_data else "opaque")
    if picture.has_transparency_data:
        least, _ = picture.convert("RGBA").getchannel("A").getextrema()
        assert least == 0
    return picture


def check_reply(reply: ImagesResponse, n: int = 1) -> list[Image.Image]:
    """The pictures of a whole reply, checked with all that it tells."""
    assert "error" not in (reply.model_extra or {})
    assert reply.created > 0
    check_usage(reply.usage)
    check_ids(reply.data)
    assert len(reply.data) == n
    return [check_picture(item.b64_json, reply) for item in reply.data]


def check_events(events: Sequence[Any], kind: str, n: int = 1, partial_images: int = 0) -> list[Any]:
    """The final events of a stream, checked with its previews."""
    preview, final = f"{kind}.partial_image", f"{kind}.completed"
    assert {event.type for event in events} <= {preview, final}
    count = 0
    for event in events:
        assert event.created_at > 0
        check_picture(event.b64_json, event)
        if event.type == preview:
            # Counted anew for each picture.
            assert event.partial_image_index == count
            count += 1
        else:
            check_usage(event.usage)
            assert count <= partial_images
            count = 0
    finals = [event for event in events if event.type == final]
    check_ids(finals)
    assert len(finals) == n
    assert events[-1].type == final
    return finals


def check_ids(pictures: Sequence[BaseModel]) -> None:
    """Each picture has an identifier, which is no member of the SDK's types."""
    ids = [picture.model_extra["generation_id"] for picture in pictures]
    assert [str(uuid.UUID(generation_id)) for generation_id in ids] == ids
    assert len(set(ids)) == len(ids)


def check_usage(usage: BaseModel | None) -> None:
    assert usage is not None
    counts = usage.to_dict()
    for side in ("input", "output"):
        details = counts[f"{side}_tokens_details"]
        assert counts[f"{side}_tokens"] == details["image_tokens"] + details["text_tokens"]
    assert counts["total_tokens"] == counts["input_tokens"] + counts["output_tokens"] > 0
