"""What the OpenAI SDK raises when the gateway refuses to draw."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import openai
import pytest

from backends import GATE, MODEL
from drawing import BOTH, REFERENCE, Call, edit, edit_by_json, generate, url_of
from gateway import MESSAGES_KEY, TEXT_KEY
from pictures import case_name, data_url, file_of, masking, scene

if TYPE_CHECKING:
    from openai import AsyncOpenAI, OpenAI

    from gateway import Gateway

pytestmark = GATE


def check_refusal(error: openai.APIStatusError, param_and_code: str) -> None:
    assert (error.type, f"{error.param}: {error.code}") == ("invalid_request_error", param_and_code)
    assert error.request_id == error.response.headers["x-request-id"]


STREAMED_OR_NOT = pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])


@BOTH
@STREAMED_OR_NOT
@pytest.mark.parametrize(
    ("change", "refusal"),
    [
        ({"partial_images": -1}, "partial_images: integer_below_min_value"),
        ({"partial_images": 4}, "partial_images: integer_above_max_value"),
        ({"n": 0}, "n: integer_below_min_value"),
        ({"n": 11}, "n: integer_above_max_value"),
        ({"extra_body": {"seed": "seven"}}, "seed: invalid_type"),
        ({"prompt": "a" * 32_001}, "prompt: string_above_max_length"),
        ({"model": "alt-flash"}, "model: model_not_supported"),
    ],
    ids=case_name,
)
def test_a_bad_value_is_refused(
    image_client: OpenAI, call: Call, change: dict[str, Any], refusal: str, streams: bool
) -> None:
    with pytest.raises(openai.BadRequestError) as raised:
        call(image_client, **change, stream=streams)
    check_refusal(raised.value, refusal)


@MODEL
@BOTH
@STREAMED_OR_NOT
@pytest.mark.parametrize(
    ("change", "refusal"),
    [
        ({"size": "large"}, "size: invalid_value"),
        ({"size": "9000x100"}, "size: invalid_value"),
        ({"quality": "best"}, "quality: invalid_value"),
        ({"background": "blue"}, "background: invalid_value"),
        ({"background": "transparent", "output_format": "jpeg"}, "background: invalid_value"),
        ({"output_format": "gif"}, "output_format: unsupported_value"),
        ({"output_compression": 101}, "output_compression: integer_above_max_value"),
        ({"extra_body": {"response_format": "url"}}, "response_format: unsupported_value"),
    ],
    ids=case_name,
)
def test_a_setting_that_the_engine_does_not_have_is_refused(
    image_client: OpenAI, call: Call, change: dict[str, Any], refusal: str, streams: bool
) -> None:
    """An upstream judges its settings itself."""
    with pytest.raises(openai.BadRequestError) as raised:
        call(image_client, **change, stream=streams)
    check_refusal(raised.value, refusal)


@STREAMED_OR_NOT
def test_a_prompt_is_needed(image_client: OpenAI, streams: bool) -> None:
    for call in (
        lambda: generate(image_client, prompt=openai.omit, stream=streams),
        lambda: edit(image_client, prompt=openai.omit, stream=streams),
        # In a form an empty field is none.
        lambda: edit(image_client, prompt="", stream=streams),
        lambda: edit_by_json(image_client, prompt=openai.omit, stream=streams),
    ):
        with pytest.raises(openai.BadRequestError) as raised:
            call()
        check_refusal(raised.value, "prompt: missing_required_parameter")


@STREAMED_OR_NOT
def test_a_reference_is_needed(image_client: OpenAI, streams: bool) -> None:
    with pytest.raises(openai.BadRequestError) as raised:
        edit(image_client, image=[], stream=streams)
    check_refusal(raised.value, "image: missing_required_parameter")
    with pytest.raises(openai.BadRequestError) as raised:
        edit_by_json(image_client, images=[], stream=streams)
    check_refusal(raised.value, "images: missing_required_parameter")


@pytest.mark.parametrize(
    ("change", "refusal"),
    [
        ({"images": [{"file_id": "file_1"}]}, "images[0].file_id: unsupported_parameter"),
        ({"mask": {"file_id": "file_1"}}, "mask.file_id: unsupported_parameter"),
        ({"images": [{"image_url": "https://127.0.0.1/a.png"}]}, "images[0].image_url: invalid_value"),
        ({"images": [{"image_url": "http://example.com/a.png"}]}, "images[0].image_url: invalid_value"),
        ({"images": [{}]}, "images[0].image_url: missing_required_parameter"),
        ({"mask": {"image_url": data_url(file_of(scene(), "jpeg"), "jpeg")}}, "mask: invalid_value"),
    ],
    ids=["file", "mask file", "private address", "http", "nothing", "mask in jpeg"],
)
def test_a_bad_reference_is_refused(image_client: OpenAI, change: dict[str, Any], refusal: str) -> None:
    with pytest.raises(openai.BadRequestError) as raised:
        edit_by_json(image_client, **change)
    check_refusal(raised.value, refusal)


@MODEL
@pytest.mark.parametrize(
    ("mask", "code"),
    [
        pytest.param(file_of(masking((64, 96))), "invalid_value", id="another size"),
        pytest.param(file_of(scene()), "invalid_value", id="no alpha"),
        pytest.param(file_of(masking(), "webp", lossless=True), "unsupported_file_mimetype", id="no png"),
        pytest.param(b"no picture", "unsupported_file_mimetype", id="no picture"),
    ],
)
def test_a_bad_mask_is_refused(image_client: OpenAI, mask: bytes, code: str) -> None:
    with pytest.raises(openai.BadRequestError) as raised:
        edit(image_client, mask=mask)
    check_refusal(raised.value, f"mask: {code}")
    with pytest.raises(openai.BadRequestError) as raised:
        edit_by_json(image_client, mask=url_of(mask))
    check_refusal(raised.value, "mask: invalid_value")


@MODEL
def test_bytes_that_are_no_picture_are_refused(image_client: OpenAI) -> None:
    unsupported = "unsupported_file_mimetype"
    for file, code in ((b"no picture", unsupported), (REFERENCE[:60], "invalid_value"), (b"", unsupported)):
        with pytest.raises(openai.BadRequestError) as raised:
            edit(image_client, image=file)
        check_refusal(raised.value, f"image: {code}")
    with pytest.raises(openai.BadRequestError) as raised:
        edit_by_json(image_client, images=[url_of(b"no picture")])
    check_refusal(raised.value, "images[0].image_url: invalid_value")


@MODEL
def test_more_references_than_two_are_refused(image_client: OpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as raised:
        edit(image_client, image=[REFERENCE] * 3)
    check_refusal(raised.value, "image: invalid_value")
    with pytest.raises(openai.BadRequestError) as raised:
        edit_by_json(image_client, images=[url_of(REFERENCE)] * 3)
    check_refusal(raised.value, "images: invalid_value")


def test_edits_are_for_two_models(image_client: OpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as raised:
        edit(image_client, model="model-image-2")
    check_refusal(raised.value, "model: model_not_supported")


@BOTH
@STREAMED_OR_NOT
def test_an_unknown_model_is_not_found(image_client: OpenAI, call: Call, streams: bool) -> None:
    with pytest.raises(openai.NotFoundError) as raised:
        call(image_client, model="nope", stream=streams)
    check_refusal(raised.value, "model: model_not_found")


@BOTH
@STREAMED_OR_NOT
@pytest.mark.parametrize("key", [TEXT_KEY, MESSAGES_KEY], ids=["text", "messages"])
def test_the_key_must_be_for_images(gateway: Gateway, call: Call, streams: bool, key: str) -> None:
    with gateway.openai(key) as client, pytest.raises(openai.PermissionDeniedError) as raised:
        call(client, stream=streams)
    assert (raised.value.type, raised.value.code) == ("invalid_request_error", "insufficient_permissions")


@pytest.mark.anyio
async def test_refusals_are_awaited(async_image_client: AsyncOpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as raised:
        await generate(async_image_client, partial_images=4, stream=True)
    check_refusal(raised.value, "partial_images: integer_above_max_value")
