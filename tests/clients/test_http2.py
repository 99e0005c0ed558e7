"""The SDKs over HTTP/2: chosen by ALPN with TLS, and with prior knowledge without it."""

from __future__ import annotations

import asyncio
import ssl
from typing import TYPE_CHECKING, Any

import anthropic
import httpx2
import openai
import pytest
import trustme

from backends import catalog
from gateway import Gateway, running
from simulator import simulating

if TYPE_CHECKING:
    from collections.abc import Iterator

    Served = tuple[Gateway, dict[str, Any]]

HOST = "127.0.0.1"
QUESTION = {"role": "user", "content": "Say hello."}
ASK: dict[str, Any] = {"model": "alt-flash", "messages": [QUESTION]}
ASK_MESSAGES: dict[str, Any] = {"model": "msg-sonnet-5", "max_tokens": 64, "messages": [QUESTION]}
ANSWER = "You said: Say hello."


@pytest.fixture(scope="module", params=["ALPN", "prior knowledge"])
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A gateway, and the options of a client that reaches it over HTTP/2."""
    folder = tmp_path_factory.mktemp("http2")
    section, options = "", {"http1": False, "http2": True}
    if request.param == "ALPN":
        authority = trustme.CA()
        identity = authority.issue_cert(HOST)
        certificate, key = folder / "certificate.pem", folder / "key.pem"
        identity.private_key_pem.write_to_path(str(key))
        for pem in identity.cert_chain_pems:
            pem.write_to_path(str(certificate), append=True)
        section = f'\n[tls]\ncertificate = "{certificate}"\nkey = "{key}"\n'
        context = ssl.create_default_context()
        authority.configure_trust(context)
        options = {"http2": True, "verify": context}
    with simulating() as base_url, running(folder, catalog("chat", base_url) + section) as gateway:
        yield gateway, options


def test_plain_and_streamed_answers_come_over_http2(served: Served) -> None:
    gateway, options = served
    versions: list[str] = []
    hooks = {"event_hooks": {"response": [lambda response: versions.append(response.http_version)]}}
    with gateway.openai(http_client=openai.DefaultHttpxClient(**options, **hooks)) as client:
        completion = client.chat.completions.create(**ASK)
        with client.chat.completions.create(**ASK, stream=True) as stream:
            pieces = [chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices]
    assert completion.choices[0].message.content == "".join(pieces) == ANSWER
    with gateway.anthropic(http_client=anthropic.DefaultHttpxClient(**options, **hooks)) as client:
        message = client.messages.create(**ASK_MESSAGES)
        with client.messages.stream(**ASK_MESSAGES) as stream:
            streamed = stream.get_final_message()
    assert message.content[0].text == streamed.content[0].text == ANSWER
    assert versions == ["HTTP/2"] * 4


@pytest.mark.anyio
async def test_many_streams_share_one_connection(served: Served) -> None:
    gateway, options = served
    versions: list[str] = []

    async def note(response: httpx2.Response) -> None:
        versions.append(response.http_version)

    options = options | {"limits": httpx2.Limits(max_connections=1), "event_hooks": {"response": [note]}}
    async with gateway.async_openai(http_client=openai.DefaultAsyncHttpxClient(**options)) as client:

        async def ask() -> str:
            stream = await client.chat.completions.create(**ASK, stream=True)
            return "".join([chunk.choices[0].delta.content or "" async for chunk in stream if chunk.choices])

        assert await asyncio.gather(*(ask() for _ in range(20))) == [ANSWER] * 20
    assert versions == ["HTTP/2"] * 20
