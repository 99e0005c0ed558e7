"""The gateways of a run, the clients of the tests, and the choice of what runs where."""

from __future__ import annotations

import os
from contextlib import ExitStack
from typing import TYPE_CHECKING

import openai
import pytest

import backends
import seed
from backends import Backend, Backends
from gateway import IMAGE_KEY, Gateway

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from anthropic import Anthropic, AsyncAnthropic
    from openai import AsyncOpenAI, OpenAI

pytest.register_assert_rewrite("pictures")

# What the gateway makes of the values of a request, its traces, HTTP/2 and WebSockets do not depend on the major of the
# SDK, and the newest one has all words.
OF_THE_CURRENT_MAJOR = [
    "test_http2.py",
    "test_image_values.py",
    "test_literals.py",
    "test_openai_agents.py",
    "test_traces.py",
    "test_websocket.py",
]
collect_ignore = OF_THE_CURRENT_MAJOR if openai.__version__.startswith("2.") else []


def pytest_report_header() -> str:
    return f"drawn by {seed.VARIABLE}={seed.SEED}"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Repeats a test for each backend that it names."""
    if "backend" in metafunc.fixturenames:
        marker = metafunc.definition.get_closest_marker("behind")
        if marker is None:
            pytest.fail(f"{metafunc.definition.nodeid} does not say behind which backends it runs", pytrace=False)
        metafunc.parametrize("backend", backends.params(*marker.args, **marker.kwargs), indirect=True)


@pytest.fixture(scope="session", autouse=True)
def _no_settings_of_the_user() -> Iterator[None]:
    """The SDKs and their transport read addresses, keys, headers and proxies from the environment."""
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name.startswith(("OPENAI_", "ANTHROPIC_")) or name.lower().endswith("_proxy"):
                patch.delenv(name)
        yield


@pytest.fixture(scope="session")
def all_backends(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Backends]:
    with ExitStack() as stack:
        yield Backends(stack, tmp_path_factory)


@pytest.fixture
def backend(request: pytest.FixtureRequest, all_backends: Backends) -> Backend:
    return all_backends[request.param]


@pytest.fixture
def gateway(backend: Backend) -> Gateway:
    return backend.gateway


@pytest.fixture
def openai_client(backend: Backend) -> OpenAI:
    return backend.openai


@pytest.fixture
def anthropic_client(backend: Backend) -> Anthropic:
    return backend.anthropic


@pytest.fixture
def image_client(backend: Backend) -> OpenAI:
    return backend.images


@pytest.fixture
def lenient_client(backend: Backend) -> OpenAI:
    """For images of any size: strict reading of the previous major knows three sizes only."""
    return backend.lenient_images


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
