"""What the tests ask about: a picture, a structure, a function."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

# 16 x 16 pixels of one red.
RED_PNG = "iVBORw0KGgoAAAANSUhEUgAAABAAAAAQCAIAAACQkWg2AAAAFklEQVR42mP4z8BAEmIY1TCqYfhqAACQ+f8B8u7oVwAAAABJRU5ErkJggg=="
RED_URL = f"data:image/png;base64,{RED_PNG}"

QUESTION = "What is 2 plus 2?"
JSON_QUESTION = 'Reply with the JSON {"ok": true}.'
STORY = "Write a long story about a dragon."
# Also long at the simulator.
LONG = f"{STORY} Please count to 200."
# The simulator calls a function on its own where it is named.
WEATHER_QUESTION = "What is the weather in Oslo right now? Ask get_weather."
WEATHER = '{"temperature_celsius": 17}'


class Place(BaseModel):
    """A structure whose every value is short."""

    country: Literal["France", "Spain"]
    is_capital: bool
    size: Literal["big", "small"]


class GetWeather(BaseModel):
    """Look up the weather of a city."""

    model_config = ConfigDict(extra="forbid")

    city: Literal["Oslo", "Paris"]


class Nothing(BaseModel):
    """The arguments of a function that has none."""

    model_config = ConfigDict(extra="forbid")


def schema_of(model: type[BaseModel]) -> dict[str, Any]:
    """The JSON schema of a model in the strict form that the APIs ask for."""
    return model.model_json_schema() | {"additionalProperties": False}
