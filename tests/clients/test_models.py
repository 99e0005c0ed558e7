"""`client.models` of both SDKs: one body serves both."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from anthropic.types import ModelInfo

from backends import GATE
from gateway import IMAGE_KEY, MESSAGES_KEY, TEXT_KEY

if TYPE_CHECKING:
    from anthropic import Anthropic, AsyncAnthropic
    from openai import AsyncOpenAI, OpenAI

    from gateway import Gateway

pytestmark = GATE

MODELS = {
    "model-6-astra",
    "model-5.6-terra",
    "model-5.6-sol",
    "model-5.6-luna",
    "model-5.5",
    "alt-flash",
    "msg-sonnet-5",
    "model-image-2.5-sunburst",
    "model-image-2.5-flare",
    "model-image-2",
}


def test_openai_lists_the_models(openai_client: OpenAI) -> None:
    page = openai_client.models.list()
    assert page.object == "list"
    assert [model.id for model in page] == [model.id for model in page.data]
    assert {model.id for model in page} == MODELS
    assert {model.object for model in page} == {"model"}
    assert all(model.created > 0 and model.owned_by for model in page)


def test_openai_retrieves_a_model(openai_client: OpenAI) -> None:
    [listed] = [model for model in openai_client.models.list() if model.id == "alt-flash"]
    assert openai_client.models.retrieve("alt-flash") == listed


def test_anthropic_lists_the_models(anthropic_client: Anthropic) -> None:
    page = anthropic_client.models.list()
    assert {model.id for model in page.data} == MODELS
    assert (page.has_more, page.first_id, page.last_id) == (False, page.data[0].id, page.data[-1].id)
    assert {model.type for model in page.data} == {"model"}
    assert all(model.display_name and model.created_at.tzinfo for model in page.data)
    # A member that the current major requires.
    if "lifecycle" in ModelInfo.model_fields:
        assert {model.lifecycle for model in page.data} == {"active"}


def test_anthropic_turns_the_pages(anthropic_client: Anthropic) -> None:
    page = anthropic_client.models.list(limit=4)
    assert (len(page.data), page.has_more) == (4, True)
    whole = [model.id for model in anthropic_client.models.list()]
    assert [model.id for model in page] == whole
    before = anthropic_client.models.list(limit=4, before_id=whole[-1])
    assert {model.id for model in before} == set(whole[:-1])


def test_anthropic_retrieves_a_model(anthropic_client: Anthropic) -> None:
    [listed] = [model for model in anthropic_client.models.list() if model.id == "msg-sonnet-5"]
    assert anthropic_client.models.retrieve("msg-sonnet-5") == listed


@pytest.mark.parametrize("key", [TEXT_KEY, MESSAGES_KEY, IMAGE_KEY], ids=["text", "messages", "images"])
def test_any_key_lists_the_models(gateway: Gateway, key: str) -> None:
    with gateway.openai(key) as client:
        assert client.models.list().data


def test_the_id_of_the_request_is_in_the_headers(openai_client: OpenAI) -> None:
    raw = openai_client.models.with_raw_response.list()
    assert raw.headers["x-request-id"].startswith("req_")
    assert raw.headers["content-type"] == "application/json"
    assert raw.parse().data


@pytest.mark.anyio
async def test_openai_awaits_the_models(async_openai_client: AsyncOpenAI) -> None:
    assert {model.id async for model in async_openai_client.models.list()} == MODELS
    assert (await async_openai_client.models.retrieve("model-5.5")).id == "model-5.5"


@pytest.mark.anyio
async def test_anthropic_awaits_the_models(async_anthropic_client: AsyncAnthropic) -> None:
    assert {model.id async for model in async_anthropic_client.models.list(limit=3)} == MODELS
    assert (await async_anthropic_client.models.retrieve("model-5.5")).id == "model-5.5"
