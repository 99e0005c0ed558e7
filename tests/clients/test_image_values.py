"""Every value of the image endpoints: each of the tested ones with each model, and all pairs of values together."""

from __future__ import annotations

from itertools import combinations, product
from typing import TYPE_CHECKING, Any

import openai
import pytest
from allpairspy import AllPairs

from backends import MODEL
from pictures import SIZE, case_name, check_events, check_reply, file_of, picture_in, scene

if TYPE_CHECKING:
    from openai import OpenAI

pytestmark = MODEL

OMITTED = openai.omit
REFERENCE = file_of(scene())
PROMPT = "A red circle above a blue sea."
CLEAR_PROMPT = "A red circle on a transparent background."

# What is promised, value by value, beside a model and an endpoint.
PROMISES: list[dict[str, Any]] = [
    *({"n": n} for n in (1, 2)),
    *({"size": size} for size in (OMITTED, "1024x1024", "1536x1024", "1024x1536", "auto")),
    *({"quality": quality} for quality in ("low", "medium", "high", "xhigh", "max", "auto")),
    *({"background": "transparent", "output_format": encoding} for encoding in ("png", "webp")),
    {"background": "opaque", "output_format": "jpeg"},
    {"background": "auto", "output_format": "webp"},
    *({"output_format": encoding} for encoding in ("png", "jpeg", "webp")),
    *({"output_format": "jpeg", "output_compression": compression} for compression in (0, 100)),
    {"output_format": "webp", "output_compression": 50},
    {"stream": False},
    *({"stream": True, "partial_images": previews} for previews in (0, 1, 2, 3)),
]
# The older model promises less, and no edits.
OLDER_PROMISES: list[dict[str, Any]] = [
    {"n": 1},
    {"size": "1024x1024"},
    *({"quality": quality} for quality in ("low", "medium", "high", "auto")),
    {"output_format": "png"},
]
NEWER_MODELS = ("model-image-2.5-flare", "model-image-2.5-sunburst")

# All pairs of these are asked for.
VALUES: dict[str, tuple[Any, ...]] = {
    "quality": ("low", "medium", "high", "xhigh", "max", "auto", OMITTED),
    "size": ("1024x1024", "1536x1024", "1024x1536", "auto", OMITTED),
    "background": ("transparent", "opaque", "auto", OMITTED),
    "output_format": ("png", "jpeg", "webp", OMITTED),
    "output_compression": (0, 50, 100, OMITTED),
    "partial_images": (0, 1, 2, 3),
    "stream": (False, True),
    "n": (1, 2),
    "edits": (False, True),
    "model": NEWER_MODELS,
}


def is_allowed(row: list[Any]) -> bool:
    """JPEG has no transparency. The row may still be growing."""
    ask = dict(zip(VALUES, row, strict=False))
    return (ask.get("background"), ask.get("output_format")) != ("transparent", "jpeg")


ARRAY = [dict(zip(VALUES, row, strict=True)) for row in AllPairs(list(VALUES.values()), filter_func=is_allowed)]


def check(client: OpenAI, *, edits: bool = False, stream: bool = False, **ask: Any) -> None:
    """The pictures of one request, each decoded and held against what was asked for and against what is told."""
    ask |= {"prompt": CLEAR_PROMPT if ask.get("background") == "transparent" else PROMPT, "extra_body": {"seed": 1}}
    n, previews = ask.get("n", 1), ask.get("partial_images", 0)
    call = client.images.edit if edits else client.images.generate
    reference = {"image": REFERENCE} if edits else {}
    reply = call(**reference, **ask, stream=stream)
    if stream:
        with reply:
            events = list(reply)
        finals = check_events(events, "image_edit" if edits else "image_generation", n, previews)
        pictures = [picture_in(final.b64_json) for final in finals]
    else:
        events, pictures = [reply], check_reply(reply, n)
    for event in events:
        check_told(event, ask)
    for picture in pictures:
        check_size(picture.size, ask.get("size", OMITTED), edits=edits)


def check_told(told: Any, ask: dict[str, Any]) -> None:
    """What is told is what was asked for, or what stands for it."""
    quality, background = ask.get("quality", OMITTED), ask.get("background", OMITTED)
    assert told.quality == ("medium" if quality in ("auto", OMITTED) else quality)
    assert told.background == ("transparent" if background == "transparent" else "opaque")
    assert told.output_format == (ask.get("output_format", OMITTED) or "png")


def check_size(size: tuple[int, int], asked: Any, *, edits: bool) -> None:
    if asked is OMITTED:
        assert size == (1254, 1254)
    elif asked != "auto":
        assert asked == "{}x{}".format(*size)
    elif edits:
        assert size == SIZE


@pytest.mark.parametrize("edits", [False, True], ids=["generate", "edit"])
@pytest.mark.parametrize("model", [NEWER_MODELS[0], pytest.param(NEWER_MODELS[1], marks=pytest.mark.long)])
@pytest.mark.parametrize("ask", PROMISES, ids=case_name)
def test_a_promise_is_kept(image_client: OpenAI, ask: dict[str, Any], model: str, edits: bool) -> None:
    check(image_client, **ask, model=model, edits=edits)


@pytest.mark.parametrize("ask", OLDER_PROMISES, ids=case_name)
def test_a_promise_of_the_older_model_is_kept(image_client: OpenAI, ask: dict[str, Any]) -> None:
    check(image_client, **ask, model="model-image-2")


@pytest.mark.long
@pytest.mark.parametrize("ask", ARRAY, ids=case_name)
def test_values_go_together(image_client: OpenAI, ask: dict[str, Any]) -> None:
    check(image_client, **ask)


def test_the_array_has_every_pair_and_few_rows() -> None:
    assert len(ARRAY) <= 120
    for first, second in combinations(VALUES, 2):
        wanted = set(product(VALUES[first], VALUES[second]))
        if (first, second) == ("background", "output_format"):
            wanted.remove(("transparent", "jpeg"))
        assert {(row[first], row[second]) for row in ARRAY} == wanted
