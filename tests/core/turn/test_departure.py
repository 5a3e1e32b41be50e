"""A turn whose client goes away, at any moment of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import Any

import pytest

from attache_core.errors import ClientError, StoreError, UpstreamError
from attache_core.events.event import Event
from attache_core.json_codec import Json
from attache_core.storage import Conversation, Lease, StoredTurn
from attache_core.testing.memory_store import MemoryStore
from attache_core.tools.task_scope import task_scope
from attache_core.turn.below import Below
from attache_core.turn.departure import Departure, OnDisconnect
from attache_core.turn.persist import DEFAULT_TERMS, persist
from attache_core.types.paging import Page
from attache_core.types.turn import DEFAULT_TENANT, TurnRequest, Unattended

ITEM: Json = {"id": "msg_1", "type": "message", "status": "in_progress", "role": "assistant", "content": []}
PART: Json = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
PLACE: Json = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
WHOLE: Json = {**ITEM, "status": "completed", "content": [{**PART, "text": "Hello."}]}


def stream_of(response_id: str | None) -> list[Event]:
    """The canonical events of a response that says `Hello.`."""
    begun: Json = {"id": response_id, "object": "response", "status": "in_progress", "created_at": 0, "output": []}
    ended = {**begun, "status": "completed", "output": [WHOLE], "usage": {"total_tokens": 2}}
    payloads: list[Json] = [
        {"type": "response.created", "response": begun},
        {"type": "response.in_progress", "response": begun},
        {"type": "response.output_item.added", "output_index": 0, "item": ITEM},
        {"type": "response.content_part.added", **PLACE, "part": PART},
        {"type": "response.output_text.delta", **PLACE, "delta": "Hel", "logprobs": []},
        {"type": "response.output_text.delta", **PLACE, "delta": "lo.", "logprobs": []},
        {"type": "response.output_text.done", **PLACE, "text": "Hello.", "logprobs": []},
        {"type": "response.content_part.done", **PLACE, "part": {**PART, "text": "Hello."}},
        {"type": "response.output_item.done", "output_index": 0, "item": WHOLE},
        {"type": "response.completed", "response": ended},
    ]
    return [Event(payload["type"], {**payload, "sequence_number": n}) for n, payload in enumerate(payloads)]


EVENTS = len(stream_of(None))


class Model:
    """What is below: it says some of its events, and then waits for good, or goes on to its end."""

    def __init__(self, says: int = EVENTS) -> None:
        self.says = says
        self.asked: list[TurnRequest] = []
        self.waits = asyncio.Event()
        self.closed = False

    async def __call__(self, turn: TurnRequest) -> AsyncGenerator[Event, None]:
        self.asked.append(turn)
        try:
            for event in stream_of(turn.facts.response_id)[: self.says]:
                yield event
            self.waits.set()
            if self.says < EVENTS:
                await asyncio.Event().wait()
        finally:
            self.closed = True


class SlowStore(MemoryStore):
    """Tells when a turn is about to be written, and waits before it writes, or after it has."""

    def __init__(self, *, written: bool) -> None:
        super().__init__()
        self.writes = asyncio.Event()
        self._written = written

    async def save_turn(self, tenant: str, turn: StoredTurn, lease: Lease | None = None) -> None:
        first = not self.writes.is_set()
        if not first or self._written:
            await super().save_turn(tenant, turn, lease)
        self.writes.set()
        if first:
            await asyncio.Event().wait()


def turn(**body: Any) -> TurnRequest:
    return TurnRequest({"model": "m", "input": "Hi", **body}).with_facts(response_id="resp_1")


async def left_when(
    left: asyncio.Event, asked: TurnRequest, below: Below, store: MemoryStore, setting: OnDisconnect
) -> list[Event]:
    """What a client had got by the time it was cancelled, once `left` is set."""
    got: list[Event] = []

    async def client() -> None:
        async for event in persist(asked, below, store, DEFAULT_TERMS, Departure(setting)):
            got.append(event)  # noqa: PERF401 - what was got before the cancellation counts

    async with asyncio.timeout(5), task_scope() as tasks:
        asking = tasks.start(client())
        await left.wait()
        asking.cancel()
        await asyncio.wait([asking])
    return got


async def stored(store: MemoryStore) -> Json | None:
    return await store.load_response(DEFAULT_TENANT, "resp_1")


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("says", range(EVENTS))
async def test_turn_is_stored_as_cancelled_wherever_its_client_leaves(says: int, stream: bool) -> None:
    store, model = MemoryStore(), Model(says)

    got = await left_when(model.waits, turn(stream=stream), model, store, "store_cancelled")

    response = await stored(store)
    assert response is not None
    text = ["", "", "", "", "", "Hel", *["Hello."] * 4][says]
    item = WHOLE if says == 9 else {**ITEM, "status": "incomplete", "content": [{**PART, "text": text}] * (says > 3)}
    assert response["output"] == [item] * (says > 2)
    assert (response["status"], response["usage"], response["completed_at"]) == ("cancelled", None, None)
    assert (len(got), model.closed) == (says if stream else 0, True)


@pytest.mark.parametrize("setting", ["store_cancelled", "finish"])
@pytest.mark.parametrize("written", [False, True])
async def test_turn_whose_client_leaves_while_it_is_written_is_stored_whole(
    setting: OnDisconnect, written: bool
) -> None:
    store, model = SlowStore(written=written), Model()

    await left_when(store.writes, turn(), model, store, setting)

    response = await stored(store)
    assert response == stream_of("resp_1")[-1].data["response"]


async def test_turn_whose_client_leaves_while_it_is_written_is_in_its_conversation_once() -> None:
    for written in (False, True):
        store, model = SlowStore(written=written), Model()
        await store.conversations.create(DEFAULT_TENANT, Conversation("conv_1", 0, {}), [])

        await left_when(store.writes, turn(conversation="conv_1"), model, store, "store_cancelled")

        page = await store.conversations.list_items(DEFAULT_TENANT, "conv_1", Page(order="asc"))
        assert page is not None
        assert [item["type"] for item in page.items] == ["message", "message"]
        assert await store.conversations.lease(DEFAULT_TENANT, "conv_1", "resp_2", 1.0) is not None


@pytest.mark.parametrize("setting", ["cancel", "store_cancelled"])
async def test_conversation_of_a_turn_that_was_left_is_free_and_unchanged(setting: OnDisconnect) -> None:
    store, model = MemoryStore(), Model(5)
    await store.conversations.create(DEFAULT_TENANT, Conversation("conv_1", 0, {}), [])

    await left_when(model.waits, turn(conversation="conv_1"), model, store, setting)

    assert await store.conversations.load_history(DEFAULT_TENANT, "conv_1") == []
    assert await store.conversations.lease(DEFAULT_TENANT, "conv_1", "resp_2", 1.0) is not None


@pytest.mark.parametrize(
    ("setting", "asked"), [("cancel", turn()), ("store_cancelled", turn(store=False)), ("finish", turn(store=False))]
)
async def test_turn_that_is_not_kept_is_passed_on_as_it_is_and_leaves_nothing(
    setting: OnDisconnect, asked: TurnRequest
) -> None:
    store, model = MemoryStore(), Model(5)

    await left_when(model.waits, asked, model, store, setting)

    assert (await stored(store), model.closed) == (None, True)
    assert model.asked == [asked.with_facts(stored=asked.store)]


async def test_turn_that_is_kept_is_streamed_below_without_padding_and_asks_its_host_to_go_on() -> None:
    asked = turn(stream_options={"include_obfuscation": True})
    model = Model()
    departure = Departure("finish", finish_timeout_s=3.0, max_unattended_turns=2)

    got = [event async for event in persist(asked, model, MemoryStore(), DEFAULT_TERMS, departure)]

    assert [event.type for event in got] == ["response.completed"]
    assert model.asked[0].body == {**asked.body, "stream": True, "stream_options": {"include_obfuscation": False}}
    assert model.asked[0].unattended == Unattended(timeout_s=3.0, max_turns=2)


async def test_client_that_closes_the_events_leaves_the_turn_as_one_that_is_cancelled() -> None:
    store, model = MemoryStore(), Model()
    events = persist(turn(stream=True), model, store, DEFAULT_TERMS, Departure("store_cancelled"))

    assert (await anext(events)).type == "response.created"
    await events.aclose()

    response = await stored(store)
    assert response is not None
    assert (response["status"], response["output"]) == ("cancelled", [])


async def test_turn_whose_end_was_told_is_not_written_again() -> None:
    store, model = MemoryStore(), Model()
    events = persist(turn(stream=True), model, store, DEFAULT_TERMS, Departure("store_cancelled"))
    async for event in events:
        if event.is_terminal:
            store.available = False
            break
    await events.aclose()

    store.available = True
    response = await stored(store)
    assert response is not None
    assert response["status"] == "completed"


async def test_store_that_is_down_when_a_client_leaves_disturbs_nothing() -> None:
    store, model = MemoryStore(), Model(3)
    store.available = False

    await left_when(model.waits, turn(), model, store, "store_cancelled")

    store.available = True
    assert (await stored(store), model.closed) == (None, True)


@pytest.mark.parametrize(
    ("error", "status", "kind"),
    [
        ({"code": "context_length_exceeded", "message": "Too long."}, 400, ClientError),
        ({"code": "rate_limit_exceeded", "message": "Later."}, 429, UpstreamError),
        ({"code": "upstream_timeout", "message": "Silent."}, 504, UpstreamError),
        ({"code": "upstream_unavailable", "message": "Gone."}, 503, UpstreamError),
        ({"code": "server_error", "message": "Broken."}, 502, UpstreamError),
        (None, 502, UpstreamError),
    ],
)
async def test_turn_that_fails_is_an_error_to_a_client_that_waits_and_is_not_stored(
    error: Json | None, status: int, kind: type[Exception]
) -> None:
    store = MemoryStore()

    async def failing(asked: TurnRequest) -> AsyncGenerator[Event, None]:
        first, *_ = stream_of(asked.facts.response_id)
        yield first
        failed = {**first.data["response"], "status": "failed", "error": error}
        yield Event("response.failed", {"type": "response.failed", "response": failed, "sequence_number": 1})

    with pytest.raises(kind) as raised:
        [event async for event in persist(turn(), failing, store, DEFAULT_TERMS, Departure("store_cancelled"))]

    assert isinstance(raised.value, ClientError | UpstreamError)
    assert (raised.value.http_status, raised.value.code) == (status, None if error is None else error["code"])
    assert await stored(store) is None


async def test_turn_whose_end_cannot_be_stored_is_an_error_and_not_cancelled() -> None:
    store, model = MemoryStore(), Model()
    store.available = False

    with suppress(StoreError):
        [event async for event in persist(turn(), model, store, DEFAULT_TERMS, Departure("store_cancelled"))]
        raise AssertionError("it was told that the turn is complete")

    store.available = True
    assert await stored(store) is None
