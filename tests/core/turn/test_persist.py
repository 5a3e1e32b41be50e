from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import pytest

from attache_core.errors import ClientError, StoreError, UpstreamError
from attache_core.events.event import Event, terminal_event
from attache_core.json_codec import Json
from attache_core.storage import StoredTurn
from attache_core.testing.memory_store import MemoryStore
from attache_core.turn.below import Below
from attache_core.turn.persist import persist
from attache_core.types.turn import DEFAULT_TENANT, TurnRequest


def answering(status: str = "completed", *output: Json) -> Below:
    async def below(turn: TurnRequest) -> AsyncGenerator[Event, None]:
        response: Json = {"id": turn.facts.response_id, "status": status, "created_at": 0, "output": [*output]}
        yield Event("response.created", {"type": "response.created", "response": response})
        yield terminal_event(response, 1)

    return below


def turn(**body: Any) -> TurnRequest:
    return TurnRequest({"model": "m", "input": "Hi", **body})


class WatchedStore(MemoryStore):
    """Knows how many turns it holds."""

    saved = 0

    async def save_turn(self, tenant: str, turn: Any, lease: Any = None) -> None:
        await super().save_turn(tenant, turn, lease)
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


async def test_stored_item_without_a_type_or_an_id_gets_the_ones_it_has_by_default() -> None:
    store = MemoryStore()
    given: list[Json] = [
        {"type": None, "role": "user", "content": "Hi", "id": None},
        {"type": "function_call_output", "call_id": "c", "output": "x"},
        {"id": "item 7 \0", "role": "user", "content": "kept"},
    ]

    *_, last = [event async for event in persist(turn(input=given), answering(), store)]

    (stored,) = await store.load_chain(DEFAULT_TENANT, last.data["response"]["id"])
    assert [(item["type"], item["id"][:4]) for item in stored.input] == [
        ("message", "msg_"),
        ("function_call_output", "fco_"),
        ("message", "item"),
    ]
    assert stored.input[2] == {"type": "message", **given[2]}


async def test_turn_is_stored_with_the_items_that_it_refers_to_and_below_sees_them() -> None:
    store = MemoryStore()
    said: Json = {"id": "msg_1", "type": "message", "role": "assistant", "content": []}
    await store.save_turn(DEFAULT_TENANT, StoredTurn({"id": "resp_1", "output": [said]}, []))
    seen: list[TurnRequest] = []

    async def below(turn: TurnRequest) -> AsyncGenerator[Event, None]:
        seen.append(turn)
        async for event in answering()(turn):
            yield event

    *_, last = [event async for event in persist(turn(input=[{"id": "msg_1"}]), below, store)]

    (stored,) = await store.load_chain(DEFAULT_TENANT, last.data["response"]["id"])
    assert (stored.input, [turn.body["input"] for turn in seen]) == ([said], [[said]])


async def test_reference_to_nothing_is_refused_before_anything_is_asked() -> None:
    events = persist(turn(input=[{"id": "msg_0"}]), answering(), MemoryStore())

    with pytest.raises(ClientError, match="Item with id 'msg_0' not found"):
        await anext(events)


async def test_turn_that_is_not_stored_leaves_references_to_those_below() -> None:
    given = turn(input=[{"id": "msg_1"}], store=False)
    seen: list[TurnRequest] = []

    async def below(turn: TurnRequest) -> AsyncGenerator[Event, None]:
        seen.append(turn)
        async for event in answering()(turn):
            yield event

    assert len([event async for event in persist(given, below, MemoryStore())]) == 2
    assert [turn.body for turn in seen] == [given.body]


async def test_turn_with_store_false_leaves_nothing() -> None:
    store = WatchedStore()
    events = [event async for event in persist(turn(store=False), answering(), store)]

    assert (len(events), store.saved) == (2, 0)


@pytest.mark.parametrize(
    ("item", "retry"),
    [
        ({"type": "message", "id": "msg_1"}, {"retry-after": "1"}),
        ({"type": "mcp_call", "id": "mcp_1"}, {"retry-after": "1", "x-should-retry": "false"}),
    ],
    ids=["only the model spoke", "a tool ran"],
)
async def test_store_that_fails_keeps_the_terminal_event_back(item: Json, retry: Json) -> None:
    store = MemoryStore()
    store.available = False
    events = persist(turn(), answering("completed", item), store)

    assert (await anext(events)).type == "response.created"
    with pytest.raises(StoreError) as failed:
        await anext(events)
    assert failed.value.headers == retry


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
