from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import pytest

from attache_core.errors import StoreError, UpstreamError
from attache_core.events.event import Event, terminal_event
from attache_core.json_codec import Json
from attache_core.testing.memory_store import MemoryStore
from attache_core.turn.below import Below
from attache_core.turn.persist import persist
from attache_core.types.turn import DEFAULT_TENANT, TurnRequest


def answering(status: str = "completed") -> Below:
    async def below(turn: TurnRequest) -> AsyncGenerator[Event, None]:
        response: Json = {"id": turn.facts.response_id, "status": status, "created_at": 0, "output": []}
        yield Event("response.created", {"type": "response.created", "response": response})
        yield terminal_event(response, 1)

    return below


def turn(**body: Any) -> TurnRequest:
    return TurnRequest({"model": "m", "input": "Hi", **body})


class WatchedStore(MemoryStore):
    """Knows how many turns it holds."""

    saved = 0

    async def save_turn(self, tenant: str, turn: Any) -> None:
        await super().save_turn(tenant, turn)
        self.saved += 1


async def test_turn_is_stored_before_its_terminal_event_is_released() -> None:
    store = WatchedStore()
    seen = [(event.type, store.saved) async for event in persist(turn(), answering(), store)]

    assert seen == [("response.created", 0), ("response.completed", 1)]


async def test_stored_input_has_ids_and_the_response_is_what_was_sent() -> None:
    store = MemoryStore()
    given = [{"role": "user", "content": "Hi"}, {"id": "msg_mine", "type": "message", "role": "user", "content": "x"}]

    *_, last = [event async for event in persist(turn(input=given), answering(), store)]

    (stored,) = await store.load_chain(DEFAULT_TENANT, last.data["response"]["id"])
    assert stored.response == last.data["response"]
    first, second = stored.input
    assert first["id"].startswith("msg_")
    assert {name: first[name] for name in ("type", "role", "content")} == {
        "type": "message",
        "role": "user",
        "content": "Hi",
    }
    assert second == given[1]


async def test_turn_with_store_false_leaves_nothing() -> None:
    store = WatchedStore()
    events = [event async for event in persist(turn(store=False), answering(), store)]

    assert (len(events), store.saved) == (2, 0)


async def test_store_that_fails_keeps_the_terminal_event_back() -> None:
    store = MemoryStore()
    store.available = False
    events = persist(turn(), answering(), store)

    assert (await anext(events)).type == "response.created"
    with pytest.raises(StoreError):
        await anext(events)


async def test_failed_turn_is_stored_as_failed_and_told_even_when_the_store_fails_too() -> None:
    store = WatchedStore()
    assert [event.type async for event in persist(turn(), answering("failed"), store)][-1] == "response.failed"
    assert store.saved == 1
    store.available = False
    assert [event.type async for event in persist(turn(), answering("failed"), store)][-1] == "response.failed"


async def test_turn_that_is_refused_below_leaves_nothing() -> None:
    async def refusing(turn: TurnRequest) -> AsyncGenerator[Event, None]:
        if turn.body["input"]:
            raise UpstreamError("down")
        yield terminal_event({})

    store = WatchedStore()
    with pytest.raises(UpstreamError):
        [event async for event in persist(turn(), refusing, store)]
    assert store.saved == 0


async def test_client_that_leaves_leaves_nothing() -> None:
    store = WatchedStore()
    events = persist(turn(), answering(), store)
    assert (await anext(events)).type == "response.created"
    await events.aclose()

    assert store.saved == 0
