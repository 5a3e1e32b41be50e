"""Clients that talk in a few conversations at once, through whatever happens to the gateway."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from contextlib import suppress

import httpx

from attache_core.events.event import TERMINAL_TYPES
from attache_core.json_codec import Json, decode_exactly
from e2e.stage import decode_events
from soak.plan import Plan
from soak.told import Outcome, Told

REFUSALS = frozenset({"conversation_locked", "conversation_changed", "upstream_unavailable"})
"""Codes of errors that promise that nothing was stored."""

PATIENCE_S = 45.0
"""Longer than a turn waits for its conversation."""

PAUSE_S = 0.1
"""After a turn that did not end well."""


class Clients:
    """All clients of one soak."""

    def __init__(self, plan: Plan, url: str, conversations: Sequence[str]) -> None:
        self._plan = plan
        self._url = url
        self._conversations = conversations
        self._random = random.Random(plan.clients)
        self._clock = asyncio.get_running_loop().time
        self.told: list[Told] = []

    async def talk(self) -> None:
        """Turn after turn of every client, until the time is over and the last has ended."""
        end = self._clock() + self._plan.duration_s
        async with httpx.AsyncClient(base_url=self._url, timeout=PATIENCE_S) as client, asyncio.TaskGroup() as tasks:
            for number in range(self._plan.clients):
                tasks.create_task(self._talk(client, number, end))

    async def _talk(self, client: httpx.AsyncClient, number: int, end: float) -> None:
        conversation = self._conversations[number % len(self._conversations)]
        count = 0
        while self._clock() < end:
            count += 1
            turn = await self._turn(client, conversation, f"client {number}, turn {count}", stream=count % 2 == 0)
            self.told.append(turn)
            if turn.outcome != "completed":
                await asyncio.sleep(PAUSE_S)

    async def _turn(self, client: httpx.AsyncClient, conversation: str, words: str, *, stream: bool) -> Told:
        sent_at = self._clock()
        body = {"model": "m", "input": words, "conversation": conversation, "stream": stream}
        outcome, told, response = await self._ask(client, body)
        return Told(words, conversation, sent_at, self._clock(), outcome, told, response)

    async def _ask(self, client: httpx.AsyncClient, body: Json) -> tuple[Outcome, str, Json | None]:
        patience_s = self._random.uniform(0, 0.05) if self._random.random() < self._plan.leaving else PATIENCE_S
        try:
            async with asyncio.timeout(patience_s):
                answer = await client.post("/v1/responses", json=body)
        except TimeoutError:
            return "unknown", "left", None
        except httpx.HTTPError as error:
            return "unknown", type(error).__name__, None
        response = _response_of(answer)
        if response.get("status") == "completed":
            return "completed", "completed", response
        code = str((response.get("error") or {}).get("code"))
        return ("refused" if code in REFUSALS else "unknown"), f"{answer.status_code} {code}", None


def _response_of(answer: httpx.Response) -> Json:
    """The response, or the body with the error; nothing of a stream without an end, or of what is no JSON."""
    if answer.headers.get("content-type", "").startswith("text/event-stream"):
        ends = [event["response"] for event in decode_events(answer.content) if event["type"] in TERMINAL_TYPES]
        return ends[-1] if ends else {}
    with suppress(ValueError):
        body: Json = decode_exactly(answer.content)
        return body
    return {}
