"""LangChain's standard tests of chat models: its clients of Chat, Responses and Messages over upstreams of each.

A class declares the features of the vendor's protocol as supported; LangChain skips the other tests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from langchain_anthropic import ChatAnthropic
from langchain_openai import ChatOpenAI
from langchain_tests.integration_tests import ChatModelIntegrationTests

from gateway import MESSAGES_KEY, TEXT_KEY, Gateway

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage

NO_JSON_MODE = pytest.mark.xfail(strict=True, reason="Messages has no way to ask for JSON without a schema")


class Standard(ChatModelIntegrationTests):
    """The settings that all clients share; a class below is a client over an upstream."""

    upstream: str
    # How an answer gets a structure, where it does not get it by default.
    other_method: str
    structured_output_kwargs: dict[str, Any] = {}  # noqa: RUF012
    address: str
    supports_image_inputs = True
    supports_image_urls = True
    supports_pdf_inputs = True
    supports_anthropic_inputs = True
    supported_usage_metadata_details = {  # noqa: RUF012
        "invoke": ["cache_read_input", "reasoning_output"],
        "stream": ["cache_read_input", "reasoning_output"],
    }

    @pytest.fixture(autouse=True, scope="class")
    @classmethod
    def _address(cls, gateway: Gateway) -> None:
        cls.address = gateway.url

    @property
    def model_override_value(self) -> str:
        return f"claude-4-over-{self.upstream}"

    @pytest.mark.parametrize("schema_type", ["pydantic", "typeddict", "json_schema"])
    def test_structured_output_by_the_other_method(self, model: BaseChatModel, schema_type: Any) -> None:
        self.structured_output_kwargs = {"method": self.other_method}
        self.test_structured_output(model, schema_type)

    def reasoning(self) -> dict[str, Any]:
        """The arguments that turn reasoning on."""
        raise NotImplementedError

    def invoke_with_reasoning_output(self, *, stream: bool = False) -> AIMessage:
        return self.ask(stream, **self.reasoning())

    def invoke_with_cache_read_input(self, *, stream: bool = False) -> AIMessage:
        return self.ask(stream)

    def invoke_with_cache_creation_input(self, *, stream: bool = False) -> AIMessage:
        return self.ask(stream)

    def ask(self, stream: bool, **options: Any) -> AIMessage:
        model = self.chat_model_class(**self.chat_model_params, **options)
        if not stream:
            return model.invoke("Hello")
        first, *rest = model.stream("Hello")
        return sum(rest, first)


class Chat(Standard):
    """ChatOpenAI with its default protocol, Chat."""

    other_method = "function_calling"
    supports_json_mode = True
    # The gateway removes the details of the usage.
    supported_usage_metadata_details = {"invoke": [], "stream": []}  # noqa: RUF012

    @property
    def chat_model_class(self) -> type[BaseChatModel]:
        return ChatOpenAI

    @property
    def chat_model_params(self) -> dict[str, Any]:
        address = {"base_url": f"{self.address}/v1", "api_key": TEXT_KEY, "max_retries": 0}
        return address | {"model": f"gpt-5-over-{self.upstream}", "stream_usage": True, "use_responses_api": False}

    def reasoning(self) -> dict[str, Any]:
        return {"reasoning_effort": "low"}


class Responses(Chat):
    """ChatOpenAI that speaks Responses."""

    supported_usage_metadata_details = Standard.supported_usage_metadata_details
    supports_image_tool_message = True
    supports_pdf_tool_message = True

    @property
    def chat_model_params(self) -> dict[str, Any]:
        return super().chat_model_params | {"use_responses_api": True}

    def reasoning(self) -> dict[str, Any]:
        return {"reasoning": {"effort": "low"}}


class Messages(Standard):
    """ChatAnthropic."""

    other_method = "json_schema"
    supported_usage_metadata_details = {  # noqa: RUF012
        kind: [*details, "cache_creation_input"] for kind, details in Standard.supported_usage_metadata_details.items()
    }
    supports_image_tool_message = True
    supports_pdf_tool_message = True

    @property
    def chat_model_class(self) -> type[BaseChatModel]:
        return ChatAnthropic

    @property
    def chat_model_params(self) -> dict[str, Any]:
        address = {"base_url": self.address, "api_key": MESSAGES_KEY, "max_retries": 0}
        return address | {"model": f"gpt-5-over-{self.upstream}"}

    def reasoning(self) -> dict[str, Any]:
        return {"thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 2048}


class TestChatOverChat(Chat):
    upstream = "chat"
    supports_audio_inputs = True


class TestChatOverResponses(Chat):
    upstream = "responses"


class TestChatOverMessages(Chat):
    upstream = "messages"

    @NO_JSON_MODE
    def test_json_mode(self, model: BaseChatModel) -> None:
        super().test_json_mode(model)


class TestResponsesOverChat(Responses):
    upstream = "chat"


class TestResponsesOverResponses(Responses):
    upstream = "responses"


class TestResponsesOverMessages(Responses):
    upstream = "messages"

    @NO_JSON_MODE
    def test_json_mode(self, model: BaseChatModel) -> None:
        super().test_json_mode(model)


class TestMessagesOverChat(Messages):
    upstream = "chat"


class TestMessagesOverResponses(Messages):
    upstream = "responses"


class TestMessagesOverMessages(Messages):
    upstream = "messages"
