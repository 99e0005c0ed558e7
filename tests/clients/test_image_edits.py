"""`client.images.edit` of the OpenAI SDK: references and masks."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING, Any

import pytest
from PIL import Image, ImageChops

from backends import MODEL, PICTURE
from drawing import FITTING, MASK, OTHER, REFERENCE, Call, edit, edit_by_json, url_of
from pictures import HOLE, SIZE, check_events, check_picture, check_reply, file_of, masking, scene

if TYPE_CHECKING:
    from pathlib import Path

    from openai import OpenAI

pytestmark = PICTURE


@pytest.mark.parametrize(
    "image",
    [
        pytest.param(lambda _: REFERENCE, id="bytes"),
        pytest.param(lambda _: BytesIO(REFERENCE), id="a file in memory"),
        pytest.param(lambda path: path, id="a path"),
        pytest.param(lambda path: path.open("rb"), id="a file"),
        pytest.param(lambda _: ("a.png", REFERENCE), id="a name and bytes"),
        pytest.param(lambda _: ("a.png", REFERENCE, "image/png"), id="a name, bytes and their type"),
        pytest.param(lambda _: ("a.txt", REFERENCE, "text/plain"), id="a type that is wrong"),
        pytest.param(lambda path: ('é"b\r\n;.png', path.open("rb"), "image/png"), id="a name that needs escapes"),
        pytest.param(lambda _: [REFERENCE], id="a list of one"),
    ],
)
def test_a_reference_comes_in_every_form(lenient_client: OpenAI, tmp_path: Path, image: Call) -> None:
    file = tmp_path / "reference.png"
    file.write_bytes(REFERENCE)
    reply = edit(lenient_client, image=image(file), mask=BytesIO(MASK), **FITTING)
    assert check_reply(reply) == check_reply(edit_by_json(lenient_client, mask=url_of(MASK), **FITTING))


@pytest.mark.parametrize("mask", [None, MASK], ids=["free", "masked"])
@pytest.mark.parametrize("images", [[REFERENCE], [REFERENCE, OTHER], [OTHER, REFERENCE]], ids=["one", "two", "turned"])
def test_both_forms_of_edits_give_one_picture(lenient_client: OpenAI, images: list[bytes], mask: bytes | None) -> None:
    if mask and images[0] is OTHER:
        mask = file_of(masking((48, 48), (8, 8, 40, 40)))
    files = {"image": images} | ({"mask": mask} if mask else {})
    urls = {"images": [url_of(image) for image in images], "mask": url_of(mask)}
    by_form, by_json = edit(lenient_client, **files, **FITTING), edit_by_json(lenient_client, **urls, **FITTING)
    assert check_reply(by_form) == check_reply(by_json)
    assert by_form.usage == by_json.usage


@MODEL
def test_the_order_of_the_references_counts(lenient_client: OpenAI) -> None:
    one, other = ([REFERENCE, OTHER], [OTHER, REFERENCE])
    change = {"size": "128x128", "prompt": "Put the second picture onto the first."}
    assert check_reply(edit(lenient_client, image=one, **change)) != check_reply(
        edit(lenient_client, image=other, **change)
    )


@MODEL
def test_a_mask_keeps_what_it_covers(lenient_client: OpenAI) -> None:
    [picture] = check_reply(edit(lenient_client, mask=MASK, **FITTING))
    changed = ImageChops.difference(picture.convert("RGB"), scene()).getbbox()
    assert changed is not None
    left, top, right, bottom = changed
    assert (left >= HOLE[0], top >= HOLE[1], right <= HOLE[2], bottom <= HOLE[3]) == (True,) * 4


@MODEL
def test_a_mask_fades(lenient_client: OpenAI) -> None:
    """Half transparent is half of the edit."""
    half = Image.new("RGBA", SIZE, (0, 0, 0, 128))
    edited, faded = (
        check_reply(edit(lenient_client, mask=file_of(mask), **FITTING))[0]
        for mask in (Image.new("RGBA", SIZE, (0, 0, 0, 0)), half)
    )
    difference = ImageChops.difference(faded, Image.blend(edited, scene(), 128 / 255))
    assert max(high for _, high in difference.getextrema()) <= 1


@MODEL
def test_a_transparent_reference_stays_transparent(lenient_client: OpenAI) -> None:
    reference = scene().convert("RGBA")
    reference.putalpha(Image.linear_gradient("L").resize(SIZE).point(lambda alpha: max(alpha - 40, 0)))
    reply = edit(lenient_client, image=file_of(reference), mask=MASK, **FITTING)
    [picture] = check_reply(reply)
    assert reply.background == "transparent"
    for kept in ((0, 0, HOLE[0], SIZE[1]), (0, HOLE[3], *SIZE)):
        assert ImageChops.difference(picture.crop(kept), reference.crop(kept)).getbbox(alpha_only=False) is None


@MODEL
@pytest.mark.parametrize(
    ("encoding", "options", "tolerance"),
    # Decoders of JPEG round as they like.
    [("png", {}, 0), ("webp", {"lossless": True}, 0), ("jpeg", {"quality": 90}, 4)],
    ids=["png", "webp", "jpeg"],
)
def test_a_reference_has_any_encoding(
    lenient_client: OpenAI, encoding: str, options: dict[str, Any], tolerance: int
) -> None:
    file = file_of(scene(), encoding, **options)
    [picture] = check_reply(edit(lenient_client, image=file, mask=MASK, **FITTING))
    assert picture.size == SIZE
    difference = ImageChops.difference(picture.convert("RGB"), Image.open(BytesIO(file)).convert("RGB"))
    difference.paste(0, HOLE)
    assert max(high for _, high in difference.getextrema()) <= tolerance


@MODEL
@pytest.mark.parametrize("mode", ["L", "P", "RGBA", "LA", "1", "I;16"])
def test_a_reference_has_any_kind_of_pixels(lenient_client: OpenAI, mode: str) -> None:
    gray = scene().convert("L")
    file = file_of((gray.convert("I") if mode == "I;16" else gray).convert(mode))
    [picture] = check_reply(edit(lenient_client, image=file, mask=MASK, **FITTING))
    assert picture.size == SIZE


def test_an_edit_is_streamed_from_either_form(lenient_client: OpenAI) -> None:
    with edit(lenient_client, mask=MASK, stream=True, partial_images=1, **FITTING) as stream:
        [final] = check_events(list(stream), "image_edit", partial_images=1)
    whole = edit_by_json(lenient_client, mask=url_of(MASK), **FITTING)
    assert check_picture(final.b64_json, final) == check_reply(whole)[0]
