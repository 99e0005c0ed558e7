"""Every member, type and word of the SDKs' requests is relayed on its protocol, and reaches the upstream byte for byte.

For an upstream of another protocol, none of them is refused as unknown.

The types of the installed SDKs are read, so a newer release adds its own cases.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.parser import BytesParser
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
from anthropic.types.beta.message_create_params import MessageCreateParamsNonStreaming as BetaMessage
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming as Message
from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming as Chat
from openai.types.image_edit_params import ImageEditParamsNonStreaming as Edit
from openai.types.image_generate_params import ImageGenerateParamsNonStreaming as Generation
from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming as Response

from gateway import running
from literals import Samples

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gateway import Gateway

# What the upstream answers is of no interest here.
REFUSAL = b'{"error":{"message":"no","type":"invalid_request_error","param":null,"code":null}}'

KEY = "sg_test_key_of_all_scopes_000000000"
ALLOWED = {
    "responses": "store previous_response_id unknown_responses item_reference conversation background prompt file_id",
    "chat": "n audio web_search file_id",
    "messages": "file_id cache_warming",
}
LOOKUP = {"type": "object", "properties": {}}


@dataclass(frozen=True)
class Road:
    """A request type, the path that it is sent to, and what every sample of it has."""

    protocol: str
    path: str
    kind: type
    base: dict[str, Any]
    # The members that the gateway itself answers.
    own: frozenset[str] = frozenset()
    # What the vendor demands beside a member.
    beside: dict[str, dict[str, Any]] = field(default_factory=dict)


RESPONSES = Road(
    "responses",
    "/v1/responses",
    Response,
    {"input": [{"role": "user", "content": "Hi."}], "store": False},
    own=frozenset({"metadata"}),
    beside={"tool_choice": {"tools": [{"type": "function", "name": "lookup", "parameters": LOOKUP}]}},
)
CHAT = Road(
    "chat",
    "/v1/chat/completions",
    Chat,
    {"messages": [{"role": "user", "content": "Hi."}]},
    beside={
        "top_logprobs": {"logprobs": True},
        "tool_choice": {"tools": [{"type": "function", "function": {"name": "lookup", "parameters": LOOKUP}}]},
    },
)
TURN = {"max_tokens": 9, "messages": [{"role": "user", "content": "Hi."}]}
NEEDS_TOOL = {"tool_choice": {"tools": [{"name": "lookup", "input_schema": LOOKUP}]}}
MESSAGES = Road("messages", "/v1/messages", Message, TURN, beside=NEEDS_TOOL)
# The words of `betas` are values of a header.
BETA = Road("messages", "/v1/messages", BetaMessage, TURN, own=frozenset({"betas"}), beside=NEEDS_TOOL)
GENERATION = Road("images", "/v1/images/generations", Generation, {"prompt": "A boat."})


class Upstream(ThreadingHTTPServer):
    """A server that keeps the body of the latest request."""

    daemon_threads = True
    body: bytes = b""
    media_type: str = ""


class Handler(BaseHTTPRequestHandler):
    """Refuses every request, on connections that stay open."""

    protocol_version = "HTTP/1.1"
    # An answer is written at once, or the gateway waits for the rest of it.
    wbufsize = -1
    server: Upstream

    def do_POST(self) -> None:
        self.server.body = self.rfile.read(int(self.headers["content-length"]))
        self.server.media_type = self.headers["content-type"]
        self.send_response(400)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(REFUSAL)))
        self.end_headers()
        self.wfile.write(REFUSAL)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@pytest.fixture(scope="module")
def upstream() -> Iterator[Upstream]:
    with Upstream(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def with_key() -> list[str]:
    digest = hashlib.sha256(KEY.encode()).hexdigest()
    return ["[[keys]]", 'name = "all"', f'hash = "sha256:{digest}"', 'scopes = ["text", "messages", "images"]']


@pytest.fixture(scope="module")
def relaying(upstream: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway that relays every name of a model, and allows all that a model can allow."""
    address = f"http://127.0.0.1:{upstream.server_address[1]}/v1"
    lines = with_key()
    for protocol in ("responses", "chat", "messages", "images"):
        served = ["images_generations", "images_edits"] if protocol == "images" else [protocol]
        lines += ["[[upstreams]]", f'name = "{protocol}"', f'protocol = "{protocol}"', f'base_url = "{address}"']
        lines += ["[[models]]", f'id = "{protocol}-*"', f"protocols = {served}"]
        lines += [f'family = "{"images" if protocol == "images" else "text"}"']
        lines += [f'targets = [{{ upstream = "{protocol}" }}]']
        if protocol in ALLOWED:
            lines += [f"allow = {ALLOWED[protocol].split()}"]
        if protocol == "responses":
            lines += ["string_input = true"]
    with running(tmp_path_factory.mktemp("literals"), "\n".join(lines)) as gateway:
        yield gateway


def samples(road: Road) -> Iterator[tuple[str, dict[str, Any]]]:
    """The samples of a road, each valid but for what its vendor may refuse."""
    for path, sample in Samples().of(road.kind):
        member = path.split(".")[1].split("[")[0].split("=")[0] if "." in path else ""
        if member not in road.own | {"model"}:
            yield path, road.base | sample | road.beside.get(member, {}) | {"model": f"{road.protocol}-m"}


@contextmanager
def connected(gateway: Gateway) -> Iterator[HTTPConnection]:
    connection = HTTPConnection(urlsplit(gateway.url).netloc, timeout=60)
    try:
        yield connection
    finally:
        connection.close()


def post(connection: HTTPConnection, road: Road, body: bytes, media_type: str = "application/json") -> str:
    """Sends a body, and returns the answer."""
    headers = {"authorization": f"Bearer {KEY}", "content-type": media_type, "anthropic-version": "2023-06-01"}
    connection.request("POST", road.path, body, headers)
    return connection.getresponse().read().decode()


@pytest.mark.parametrize("road", [RESPONSES, CHAT, MESSAGES, BETA, GENERATION], ids=lambda road: road.kind.__module__)
def test_literals_are_relayed_in_json(relaying: Gateway, upstream: Upstream, road: Road) -> None:
    failed = {}
    with connected(relaying) as connection:
        for path, sample in samples(road):
            body = json.dumps(sample).encode()
            upstream.body = b""
            answer = post(connection, road, body)
            if upstream.body != body:
                failed[path] = upstream.body.decode() or answer
    assert not failed, "\n".join(f"{path}: {why}" for path, why in failed.items())


PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1\x08\6\0\0\0"
EDIT = Road("images", "/v1/images/edits", Edit, {"prompt": "A boat.", "image": PNG})
FILES = ("image", "mask", "markup")


def text_of(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def parts(sample: dict[str, Any]) -> list[tuple[str, bytes]]:
    """The parts of a form: nested members by their path, as the SDK writes them, and others as text."""
    found: list[tuple[str, bytes]] = []

    def add(name: str, value: Any) -> None:
        if isinstance(value, dict):
            for member, inner in value.items():
                add(f"{name}[{member}]", inner)
        elif value is not None:
            found.append((name, value if isinstance(value, bytes) else text_of(value).encode()))

    for name, value in sample.items():
        add(name, PNG if name in FILES else value)
    return found


def form(sample: dict[str, Any]) -> bytes:
    pieces = []
    for name, value in parts(sample):
        is_file = name in FILES
        pieces += [b'--sg\r\nContent-Disposition: form-data; name="', name.encode(), b'"']
        pieces += [b'; filename="a.png"\r\nContent-Type: image/png' if is_file else b"", b"\r\n\r\n", value, b"\r\n"]
    return b"".join([*pieces, b"--sg--\r\n"])


def received(upstream: Upstream) -> list[tuple[str, bytes]]:
    head = f"content-type: {upstream.media_type}\r\n\r\n".encode()
    message = BytesParser().parsebytes(head + upstream.body)
    return [
        (str(part.get_param("name", header="content-disposition")), part.get_payload(decode=True))
        for part in message.get_payload()
    ]


def test_literals_are_relayed_in_a_form(relaying: Gateway, upstream: Upstream) -> None:
    failed = {}
    with connected(relaying) as connection:
        for path, sample in samples(EDIT):
            upstream.body = b""
            answer = post(connection, EDIT, form(sample), "multipart/form-data; boundary=sg")
            if not upstream.body or sorted(received(upstream)) != sorted(parts(sample)):
                failed[path] = upstream.body.decode(errors="replace") or answer
    assert not failed, "\n".join(f"{path}: {why}" for path, why in failed.items())


@pytest.fixture(scope="module")
def translating(upstream: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway whose model is at an upstream of Chat Completions, and for clients of these at one of Messages."""
    address = f"http://127.0.0.1:{upstream.server_address[1]}/v1"
    lines = with_key()
    for protocol in ("chat", "messages"):
        lines += ["[[upstreams]]", f'name = "{protocol}"', f'protocol = "{protocol}"', f'base_url = "{address}"']
    for protocol, other in (("responses", "chat"), ("chat", "messages"), ("messages", "chat")):
        lines += ["[[models]]", f'id = "{protocol}-m"', f'protocols = ["{protocol}"]', 'family = "text"']
        lines += [f'targets = [{{ upstream = "{other}" }}]']
    with running(tmp_path_factory.mktemp("translated"), "\n".join(lines)) as gateway:
        yield gateway


USER, ASSISTANT = ({"role": role, "content": "Hi."} for role in ("user", "assistant"))
# The words of the vendors for a word that they do not know.
UNKNOWN = re.compile("Supported values are|Input should be")
# A summary cannot be had from another server, and the client would take an answer for one. The tools that a choice
# allows are sampled with any type.
UNSERVED = ("'compaction_trigger'", "'web_search'")
# The vendor takes these from one role only, and the sampler draws both.
OF_ONE_ROLE = {
    "user": {"tool_use", "thinking", "redacted_thinking"},
    "assistant": {"image", "document", "tool_result"},
}


def in_history(sample: dict[str, Any]) -> dict[str, Any]:
    """The sample with its items or messages in the middle of a conversation."""
    name = "messages" if "messages" in sample else "input"
    if not isinstance(sample[name], list):
        return sample
    return sample | {name: [USER, ASSISTANT, *sample[name], ASSISTANT, USER]}


def is_of_its_role(message: dict[str, Any]) -> bool:
    blocks = message.get("content")
    types = {block.get("type") for block in blocks} if isinstance(blocks, list) else set()
    return not types & OF_ONE_ROLE.get(message.get("role", ""), set())


@pytest.mark.parametrize("road", [RESPONSES, CHAT, BETA], ids=lambda road: road.kind.__module__)
def test_no_literal_is_unknown_where_it_is_translated(translating: Gateway, road: Road) -> None:
    failed = {}
    with connected(translating) as connection:
        for path, sample in samples(road):
            if road is BETA and not all(map(is_of_its_role, sample["messages"])):
                continue
            answer = post(connection, road, json.dumps(in_history(sample)).encode())
            if UNKNOWN.search(answer) and not any(word in answer for word in UNSERVED):
                failed[path] = answer
    assert not failed, "\n".join(f"{path}: {why}" for path, why in failed.items())
