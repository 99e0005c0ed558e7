"""`client.images` of the OpenAI SDK: what generate and edit share, whole and streamed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import openai
import pytest

from backends import MODEL, PICTURE
from drawing import ASK, BOTH, BOTH_KINDS, OTHER, REFERENCE, Call, edit, generate
from pictures import SIZE, check_events, check_reply, picture_in

if TYPE_CHECKING:
    from openai import AsyncOpenAI, OpenAI

pytestmark = PICTURE


@BOTH
def test_a_picture_is_made(image_client: OpenAI, call: Call) -> None:
    reply = call(image_client)
    [picture] = check_reply(reply)
    assert picture.size == (1024, 1024)
    assert (reply.quality, reply.background, reply.output_format) == ("low", "opaque", "png")


@MODEL
@BOTH
def test_a_seed_repeats(image_client: OpenAI, call: Call) -> None:
    first, again = (check_reply(call(image_client)) for _ in range(2))
    [other] = check_reply(call(image_client, extra_body={"seed": 8}))
    assert first == again
    assert first != [other]


@MODEL
@BOTH
def test_each_picture_has_a_seed_of_its_own(image_client: OpenAI, call: Call) -> None:
    two = check_reply(call(image_client, n=2), n=2)
    assert two == [check_reply(call(image_client, extra_body={"seed": seed}))[0] for seed in (7, 8)]


@pytest.mark.parametrize(
    "model",
    ["model-image-2.5-flare", "model-image-2.5-sunburst", "model-image-2", pytest.param(openai.omit, id="omitted")],
)
def test_each_model_draws(image_client: OpenAI, model: Any) -> None:
    check_reply(generate(image_client, model=model))


@BOTH
def test_the_size_is_1254_when_omitted(lenient_client: OpenAI, call: Call) -> None:
    reply = call(lenient_client, size=openai.omit)
    [picture] = check_reply(reply)
    assert (reply.size, picture.size) == ("1254x1254", (1254, 1254))


@MODEL
def test_an_automatic_size_is_told(lenient_client: OpenAI) -> None:
    check_reply(generate(lenient_client, size="auto"))
    [picture] = check_reply(edit(lenient_client, size="auto"))
    assert picture.size == SIZE


@BOTH
def test_what_is_automatic_is_told_as_it_became(image_client: OpenAI, call: Call) -> None:
    reply = call(image_client, quality="auto", background="auto")
    check_reply(reply)
    assert (reply.quality, reply.background) == ("medium", "opaque")


@BOTH
def test_transparency_is_drawn(image_client: OpenAI, call: Call) -> None:
    reply = call(image_client, prompt="A red circle on a transparent background.", background="transparent")
    check_reply(reply)
    assert reply.background == "transparent"


@MODEL
@BOTH
@pytest.mark.parametrize(("encoding", "low", "high"), [("jpeg", 0, 100), ("webp", 50, 90)], ids=["jpeg", "webp"])
def test_compression_changes_the_bytes(image_client: OpenAI, call: Call, encoding: str, low: int, high: int) -> None:
    small, large = (
        call(image_client, output_format=encoding, output_compression=compression) for compression in (low, high)
    )
    assert check_reply(small) != check_reply(large)
    assert len(small.data[0].b64_json) < len(large.data[0].b64_json)


@BOTH_KINDS
def test_a_stream_ends_with_the_picture(image_client: OpenAI, call: Call, kind: str) -> None:
    whole = call(image_client)
    with call(image_client, stream=True) as stream:
        events = list(stream)
    [final] = check_events(events, kind)
    assert final.b64_json == whole.data[0].b64_json
    assert (final.size, final.quality, final.background) == (whole.size, whole.quality, whole.background)
    assert final.output_format == whole.output_format
    assert counts(final) == counts(whole)


def counts(told: Any) -> dict[str, Any]:
    """The usage as it was on the wire: the SDK's type for events lacks some of it."""
    return told.usage.to_dict()


@BOTH_KINDS
@pytest.mark.parametrize("partial_images", [0, 1, 2, 3])
def test_previews_come_before_the_picture(image_client: OpenAI, call: Call, kind: str, partial_images: int) -> None:
    [expected] = check_reply(call(image_client, partial_images=partial_images))
    with call(image_client, stream=True, partial_images=partial_images) as stream:
        events = list(stream)
    [final] = check_events(events, kind, partial_images=partial_images)
    assert picture_in(final.b64_json) == expected
    # The embedded engine has all that were asked for, and none is the picture itself.
    assert len(events) == partial_images + 1
    assert final.b64_json not in {event.b64_json for event in events[:-1]}


@BOTH_KINDS
def test_a_stream_has_a_final_event_for_each_picture(image_client: OpenAI, call: Call, kind: str) -> None:
    with call(image_client, stream=True, n=2, partial_images=1) as stream:
        events = list(stream)
    finals = check_events(events, kind, n=2, partial_images=1)
    whole = call(image_client, n=2)
    assert [final.b64_json for final in finals] == [item.b64_json for item in whole.data]


@BOTH_KINDS
def test_the_shares_of_usage_add_up(image_client: OpenAI, call: Call, kind: str) -> None:
    whole = call(image_client, n=2)
    check_reply(whole, n=2)
    with call(image_client, stream=True, n=2) as stream:
        finals = check_events(list(stream), kind, n=2)
    for count in ("input_tokens", "output_tokens", "total_tokens"):
        assert sum(getattr(final.usage, count) for final in finals) == getattr(whole.usage, count)


@MODEL
def test_more_is_counted_where_there_is_more(image_client: OpenAI) -> None:
    one, two = generate(image_client).usage, generate(image_client, n=2).usage
    assert two.output_tokens == 2 * one.output_tokens
    assert generate(image_client, prompt=ASK["prompt"] * 9).usage.input_tokens > one.input_tokens
    assert generate(image_client, quality="high").usage.output_tokens > one.output_tokens
    assert one.input_tokens_details.image_tokens == 0
    edited, with_two = edit(image_client).usage, edit(image_client, image=[REFERENCE, OTHER]).usage
    assert with_two.input_tokens_details.image_tokens > edited.input_tokens_details.image_tokens > 0


def test_previews_are_counted(image_client: OpenAI) -> None:
    with generate(image_client, stream=True, partial_images=2) as stream:
        [final] = check_events(list(stream), "image_generation", partial_images=2)
    assert final.usage.output_tokens > generate(image_client).usage.output_tokens


@BOTH
def test_the_id_of_the_request_is_in_the_headers(image_client: OpenAI, call: Call) -> None:
    class Raw:
        images = image_client.images.with_raw_response

    raw = call(Raw)
    assert raw.headers["x-request-id"].startswith("req_")
    assert raw.headers["content-type"] == "application/json"
    check_reply(raw.parse())
    streamed = call(Raw, stream=True)
    assert streamed.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert len(list(streamed.parse())) == 1


@pytest.mark.anyio
@BOTH_KINDS
async def test_pictures_are_awaited(async_image_client: AsyncOpenAI, call: Call, kind: str) -> None:
    whole = await call(async_image_client)
    async with await call(async_image_client, stream=True, partial_images=1) as stream:
        events = [event async for event in stream]
    [final] = check_events(events, kind, partial_images=1)
    assert check_reply(whole) == [picture_in(final.b64_json)]


@pytest.mark.anyio
async def test_pictures_are_made_side_by_side(async_image_client: AsyncOpenAI) -> None:
    replies = {}

    async def draw(seed: int) -> None:
        replies[seed] = await generate(async_image_client, extra_body={"seed": seed})

    async with anyio.create_task_group() as group:
        for seed in range(4):
            group.start_soon(draw, seed)
    for seed, reply in replies.items():
        alone = await generate(async_image_client, extra_body={"seed": seed})
        assert check_reply(reply) == check_reply(alone)
