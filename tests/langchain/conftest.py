"""The gateway of a run, in front of the scripted model."""

from __future__ import annotations

import base64
import os
from typing import TYPE_CHECKING
from unittest.mock import Mock

import httpx
import pytest

from gateway import Gateway, running
from scripted import serving

if TYPE_CHECKING:
    from collections.abc import Iterator

# The upstreams by their protocols, each with the name of its model, by whose rules the gateway writes requests.
UPSTREAMS = {"chat": "gpt-5.5", "responses": "gpt-5.5", "messages": "claude-sonnet-4-5"}
# The files that the tests of LangChain download, by the end of its name.
FILES = {
    "png": base64.b64decode(
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    ),
    "pdf": b"%PDF-1.4\n1 0 obj<</Type/Catalog>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n",
    "wav": b"RIFF\x2c\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0\x40\x1f\0\0\x80\x3e\0\0\2\0\x10\0data\x08\0\0\0" + bytes(8),
}


@pytest.fixture(scope="session", autouse=True)
def _nothing_of_the_user() -> Iterator[None]:
    """The SDKs read addresses, keys and proxies from the environment; and files come from no other machine."""
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name.startswith(("OPENAI_", "ANTHROPIC_", "LANG")) or name.lower().endswith("_proxy"):
                patch.delenv(name)
        patch.setattr(httpx, "get", lambda url, **_: Mock(content=FILES[url.rpartition(".")[2]]))
        yield


@pytest.fixture(scope="session")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with serving() as base_url, running(tmp_path_factory.mktemp("gateway"), catalog(base_url)) as gateway:
        yield gateway


def catalog(base_url: str) -> str:
    """Two models at the upstream of each protocol, by names that llm-comply takes for reasoning models."""
    lines = ["[responses]", 'keep = "1h"']
    for upstream, theirs in UPSTREAMS.items():
        lines += ["[[upstreams]]", f'name = "{upstream}"', f'protocol = "{upstream}"', f'base_url = "{base_url}"']
        for model in ("gpt-5", "claude-4"):
            lines += ["[[models]]", f'id = "{model}-over-{upstream}"', 'family = "text"', "string_input = true"]
            lines += ['protocols = ["responses", "chat", "messages"]']
            lines += [f'targets = [{{ upstream = "{upstream}", model = "{theirs}" }}]']
    return "\n".join(lines)
