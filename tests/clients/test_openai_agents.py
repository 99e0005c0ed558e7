"""The Agents SDK of OpenAI, which speaks Responses over WebSocket."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from agents import Agent, ModelSettings, function_tool, set_tracing_disabled
from agents.responses_websocket_session import responses_websocket_session

from backends import SIMULATED
from gateway import TEXT_KEY
from samples import WEATHER_QUESTION

if TYPE_CHECKING:
    from collections.abc import Iterator

    from backends import Backend

pytestmark = pytest.mark.behind(*SIMULATED)


@function_tool
def get_weather(city: str) -> str:
    """Look up the weather of a city."""
    return f"Sunny in {city}."


@pytest.fixture(autouse=True)
def _without_traces() -> Iterator[None]:
    """The SDK sends traces to OpenAI unless they are off."""
    set_tracing_disabled(True)
    yield
    set_tracing_disabled(False)


@pytest.mark.anyio
@pytest.mark.parametrize("is_streamed", [False, True])
async def test_ten_turns_of_an_agent_continue_each_other(backend: Backend, *, is_streamed: bool) -> None:
    """Five runs, each of a call and an answer. No response is stored, so each is continued on its connection."""
    settings = ModelSettings(store=False)
    agent = Agent(name="weather", model="alt-flash", model_settings=settings, tools=[get_weather])
    previous, tokens = None, 0
    async with responses_websocket_session(api_key=TEXT_KEY, base_url=f"{backend.gateway.url}/v1") as session:
        for _ in range(5):
            options = {"previous_response_id": previous, "auto_previous_response_id": True}
            if is_streamed:
                result = session.run_streamed(agent, WEATHER_QUESTION, **options)
                assert [event async for event in result.stream_events()]
            else:
                result = await session.run(agent, WEATHER_QUESTION, **options)
            assert result.final_output.startswith("The tool said: Sunny in ")
            usages = [response.usage.input_tokens for response in result.raw_responses]
            # Each turn has the turns before it.
            assert tokens < usages[0] < usages[1]
            previous, tokens = result.last_response_id, usages[1]
