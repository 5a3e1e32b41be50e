"""The official OpenAI SDK in front of a stage, with every answer that it reads judged on the way."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import openai
from pydantic import BaseModel

from conformance.witness import Witness2Transport
from e2e.stage import WAIT_S, Stage

FORECAST: Any = {
    "type": "function",
    "name": "get_forecast",
    "description": "The forecast for a city",
    "strict": True,
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
        "additionalProperties": False,
    },
}


class Forecast(BaseModel):
    """What a model is asked to answer with."""

    city: str
    sky: str


SNOW = Forecast(city="Oslo", sky="snow")


@asynccontextmanager
async def open_sdk(
    stage: Stage, *, timeout_s: float = 4 * WAIT_S, api_key: str = "unused"
) -> AsyncIterator[openai.AsyncOpenAI]:
    """A client without retries, which `with_options(max_retries=…)` adds."""
    async with openai.AsyncOpenAI(
        base_url=f"{stage.gateway.url}/v1",
        api_key=api_key,
        max_retries=0,
        timeout=timeout_s,
        http_client=httpx2.AsyncClient(transport=Witness2Transport(), timeout=timeout_s),
    ) as client:
        yield client
