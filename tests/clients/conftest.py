"""One gateway for the whole run, and the clients of the tests."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from gateway import IMAGE_KEY, Gateway, running

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from anthropic import Anthropic, AsyncAnthropic
    from openai import AsyncOpenAI, OpenAI

pytest.register_assert_rewrite("pictures")


@pytest.fixture(scope="session", autouse=True)
def _no_settings_of_the_user() -> Iterator[None]:
    """The SDKs and their transport read addresses, keys, headers and proxies from the environment."""
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name.startswith(("OPENAI_", "ANTHROPIC_")) or name.lower().endswith("_proxy"):
                patch.delenv(name)
        yield


@pytest.fixture(scope="session")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with running(tmp_path_factory.mktemp("gateway")) as gateway:
        yield gateway


@pytest.fixture(scope="session")
def openai_client(gateway: Gateway) -> Iterator[OpenAI]:
    with gateway.openai() as client:
        yield client


@pytest.fixture(scope="session")
def anthropic_client(gateway: Gateway) -> Iterator[Anthropic]:
    with gateway.anthropic() as client:
        yield client


@pytest.fixture(scope="session")
def image_client(gateway: Gateway) -> Iterator[OpenAI]:
    with gateway.openai(IMAGE_KEY) as client:
        yield client


@pytest.fixture(scope="session")
def lenient_client(gateway: Gateway) -> Iterator[OpenAI]:
    """For images of any size: strict reading of the previous major knows three sizes only."""
    with gateway.openai(IMAGE_KEY, _strict_response_validation=False) as client:
        yield client


@pytest.fixture
async def async_openai_client(gateway: Gateway) -> AsyncIterator[AsyncOpenAI]:
    async with gateway.async_openai() as client:
        yield client


@pytest.fixture
async def async_image_client(gateway: Gateway) -> AsyncIterator[AsyncOpenAI]:
    async with gateway.async_openai(IMAGE_KEY) as client:
        yield client


@pytest.fixture
async def async_anthropic_client(gateway: Gateway) -> AsyncIterator[AsyncAnthropic]:
    async with gateway.async_anthropic() as client:
        yield client


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """What runs the tests that are marked as `anyio`."""
    return "asyncio"
