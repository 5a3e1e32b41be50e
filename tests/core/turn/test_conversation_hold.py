from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

import pytest

from attache_core.errors import ClientError, StoreError, UpstreamError
from attache_core.events.event import Event, terminal_event
from attache_core.json_codec import Json
from attache_core.storage import Conversation, Lease
from attache_core.storage.limits import DEFAULT_LIMITS
from attache_core.testing.memory_conversations import MemoryConversations
from attache_core.testing.memory_store import MemoryStore
from attache_core.tools.task_scope import task_scope
from attache_core.turn.conversation_hold import HoldTerms, hold_conversation
from attache_core.turn.persist import persist
from attache_core.turn.rehydrate import rehydrate
from attache_core.types.paging import Page
from attache_core.types.turn import DEFAULT_TENANT, TurnRequest

AT_ONCE = HoldTerms(wait_s=0)


class WatchedConversations(MemoryConversations):
    """Tells when a lease was renewed, and fails as often as it is told to."""

    failures = 0
    renewals = 0
    lingering = False

    def watch(self, until: int) -> asyncio.Event:
        self.until, self.renewed = until, asyncio.Event()
        return self.renewed

    async def lease(self, tenant: str, conversation_id: str, owner: str, ttl_s: float) -> Lease | None:
        lease = await super().lease(tenant, conversation_id, owner, ttl_s)
        if self.lingering:
            self.lingering = False
            self.given.set()
            await asyncio.Event().wait()
        return lease

    def linger(self) -> asyncio.Event:
        """The next lease is given, and its caller not told."""
        self.lingering, self.given = True, asyncio.Event()
        return self.given

    async def renew(self, tenant: str, lease: Lease, ttl_s: float) -> bool:
        if self.failures:
            self.failures -= 1
            raise StoreError("down")
        self.renewals += 1
        if self.renewals == self.until:
            self.renewed.set()
        return await super().renew(tenant, lease, ttl_s)


class WatchedStore(MemoryStore):
    """With conversations that are watched."""

    def __init__(self) -> None:
        super().__init__()
        self._conversations: WatchedConversations = WatchedConversations(self._limits, self.check)

    @property
    def conversations(self) -> WatchedConversations:
        return self._conversations


async def store_with(*ids: str, tenant: str = DEFAULT_TENANT) -> WatchedStore:
    store = WatchedStore()
    items: list[Json] = [{"id": item_id, "type": "message", "role": "user", "content": item_id} for item_id in ids]
    await store.conversations.create(tenant, Conversation("conv_1", 0, {}), items)
    return store


def turn(**body: Any) -> TurnRequest:
    return TurnRequest({"model": "m", "input": "Hi", "conversation": "conv_1", **body})


async def answer(turn: TurnRequest, status: str = "completed") -> AsyncGenerator[Event, None]:
    output: list[Json] = [{"id": "msg_answer", "type": "message", "role": "assistant", "content": "Hello"}]
    response: Json = {"id": turn.facts.response_id, "status": status, "created_at": 0, "output": output}
    yield Event("response.created", {"type": "response.created", "response": response})
    yield terminal_event(response, 1)


async def ids(store: MemoryStore) -> list[str]:
    page = await store.conversations.list_items(DEFAULT_TENANT, "conv_1", Page(100, order="asc"))
    assert page is not None
    return [item["id"] for item in page.items]


async def is_free(store: MemoryStore) -> bool:
    lease = await store.conversations.lease(DEFAULT_TENANT, "conv_1", "probe", 0)
    return lease is not None


async def run(events: AsyncIterator[Event]) -> list[str]:
    return [event.type async for event in events]


async def test_turn_without_a_conversation_holds_none() -> None:
    async with hold_conversation(TurnRequest({"model": "m", "input": "Hi"}), MemoryStore(), AT_ONCE) as hold:
        assert hold.lease is None


async def test_turn_tells_those_below_which_state_of_the_conversation_it_reads() -> None:
    store = await store_with("msg_1", "msg_2")
    seen: list[TurnRequest] = []

    async def below(turn: TurnRequest) -> AsyncGenerator[Event, None]:
        later: Json = {"id": "msg_later", "type": "message", "role": "user", "content": "later"}
        await store.conversations.add_items(DEFAULT_TENANT, "conv_1", [later])
        seen.append(await rehydrate(turn, store))
        async for event in answer(turn):
            yield event

    await run(persist(turn(), below, store, AT_ONCE))

    (whole,) = seen
    assert (whole.facts.conversation_revision, whole.facts.history_items) == (2, 2)
    assert [item.get("id") for item in whole.body["input"]] == ["msg_1", "msg_2", None]
    assert (await ids(store))[:3] == ["msg_1", "msg_2", "msg_later"]


async def test_held_conversation_is_renewed_as_long_as_the_turn_runs_though_the_store_fails_at_times() -> None:
    store = await store_with()
    store.conversations.failures = 1
    renewed = store.conversations.watch(until=4)

    async def below(turn: TurnRequest) -> AsyncGenerator[Event, None]:
        await renewed.wait()
        assert not await is_free(store)
        async for event in answer(turn):
            yield event

    async with asyncio.timeout(5):
        await run(persist(turn(), below, store, HoldTerms(wait_s=0, lease_s=0.2)))
    assert await is_free(store)


async def test_unknown_conversation_answers_404_before_anything_is_asked() -> None:
    store = await store_with(tenant="other")
    with pytest.raises(ClientError) as refused:
        await run(persist(turn(), answer, store, AT_ONCE))
    assert (refused.value.http_status, refused.value.param, refused.value.message) == (
        404,
        "conversation",
        "Conversation with id 'conv_1' not found.",
    )


async def test_held_conversation_that_does_not_get_free_answers_locked() -> None:
    store = await store_with()
    await store.conversations.lease(DEFAULT_TENANT, "conv_1", "another", 60)
    for terms in (AT_ONCE, HoldTerms(wait_s=0.05)):
        with pytest.raises(ClientError) as refused:
            await run(persist(turn(), answer, store, terms))
        assert (refused.value.http_status, refused.value.code, refused.value.param) == (
            400,
            "conversation_locked",
            "conversation",
        )


async def test_conversation_is_free_after_a_turn_however_that_ends() -> None:
    async def refusing(turn: TurnRequest) -> AsyncGenerator[Event, None]:
        if turn.body["input"]:
            raise UpstreamError("down")
        yield terminal_event({})

    def failing(turn: TurnRequest) -> AsyncGenerator[Event, None]:
        return answer(turn, "failed")

    store = await store_with()
    with pytest.raises(UpstreamError):
        await run(persist(turn(), refusing, store, AT_ONCE))
    assert await is_free(store)
    assert await run(persist(turn(), failing, store, AT_ONCE)) == ["response.created", "response.failed"]
    assert await is_free(store)
    left = persist(turn(), answer, store, AT_ONCE)
    await anext(left)
    assert not await is_free(store)
    await left.aclose()
    assert await is_free(store)
    assert await ids(store) == []


async def test_conversation_is_free_after_a_turn_that_was_cancelled_while_it_got_it() -> None:
    store = await store_with()
    given = store.conversations.linger()
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        running = tasks.create_task(run(persist(turn(), answer, store, AT_ONCE)))
        await given.wait()
        running.cancel()
    assert await is_free(store)


async def test_store_that_is_down_when_the_turn_ends_keeps_the_terminal_event_back() -> None:
    store = await store_with()
    events = persist(turn(), answer, store, HoldTerms(wait_s=0, lease_s=0))
    await anext(events)
    store.available = False
    with pytest.raises(StoreError):
        await anext(events)
    store.available = True
    assert (await ids(store), await is_free(store)) == ([], True)


async def test_turn_that_lost_its_conversation_is_refused_at_its_end_and_not_stored() -> None:
    store = await store_with()
    events = persist(turn(), answer, store, HoldTerms(wait_s=0, lease_s=0))
    created = await anext(events)
    assert await store.conversations.lease(DEFAULT_TENANT, "conv_1", "another", 60) is not None
    with pytest.raises(ClientError) as refused:
        await anext(events)
    assert (refused.value.http_status, refused.value.code) == (409, "conversation_changed")
    assert await store.load_turn(DEFAULT_TENANT, created.data["response"]["id"]) is None


async def test_turn_that_is_not_stored_adds_the_items_that_it_refers_to() -> None:
    store = await store_with()
    there: Json = {"id": "msg_there", "type": "message", "role": "user", "content": "x"}
    await store.conversations.create(DEFAULT_TENANT, Conversation("conv_2", 0, {}), [there])

    await run(persist(turn(store=False, input=[{"id": "msg_there"}]), answer, store, AT_ONCE))

    assert await ids(store) == ["msg_there", "msg_answer"]


@pytest.mark.parametrize("given", [["msg_1"], ["msg_9", "msg_9"]])
async def test_input_that_repeats_an_item_is_refused_in_a_conversation(given: list[str]) -> None:
    store = await store_with("msg_1")
    items = [{"id": item_id, "role": "user", "content": "x"} for item_id in given]
    with pytest.raises(ClientError, match=f"Duplicate item found with id '{given[-1]}'"):
        await rehydrate(turn(input=items), store)


class LateConversations(MemoryConversations):
    """Gives a lease, and takes its time to say so."""

    def __init__(self, store: MemoryStore) -> None:
        super().__init__(DEFAULT_LIMITS, store.check)
        self.given = asyncio.Event()

    async def lease(self, tenant: str, conversation_id: str, owner: str, ttl_s: float) -> Lease | None:
        lease = await super().lease(tenant, conversation_id, owner, ttl_s)
        if not self.given.is_set():
            self.given.set()
            await asyncio.Event().wait()
        return lease


async def test_turn_that_is_cancelled_while_it_gets_its_conversation_gives_it_back() -> None:
    store = MemoryStore()
    store._conversations = conversations = LateConversations(store)
    await conversations.create(DEFAULT_TENANT, Conversation("conv_1", 0, {}), [])
    turn = TurnRequest({"model": "m", "conversation": "conv_1"}).with_facts(response_id="resp_1")

    async def hold() -> None:
        async with hold_conversation(turn, store, AT_ONCE):
            raise AssertionError("it was held")

    async with asyncio.timeout(5), task_scope() as tasks:
        holding = tasks.start(hold())
        await conversations.given.wait()
        holding.cancel()
        await asyncio.wait([holding])

    assert holding.cancelled()
    assert await conversations.lease(DEFAULT_TENANT, "conv_1", "resp_2", 1.0) is not None
