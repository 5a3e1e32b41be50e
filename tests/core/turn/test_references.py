from __future__ import annotations

import pytest

from attache_core.errors import ClientError, StoreError
from attache_core.json_codec import Json
from attache_core.storage import StoredTurn, StoreLimits
from attache_core.testing.memory_store import MemoryStore
from attache_core.turn.references import resolve_references
from attache_core.types.turn import DEFAULT_TENANT, TurnRequest

SAID: Json = {"id": "msg_said", "type": "message", "role": "assistant", "status": "completed", "content": []}
GIVEN: Json = {"id": "item 7", "type": "message", "role": "user", "content": "mine"}
NEW: Json = {"role": "user", "content": "next"}


async def store_with(*, tenant: str = DEFAULT_TENANT, status: str = "completed") -> MemoryStore:
    store = MemoryStore(StoreLimits(max_items=3))
    await store.save_turn(tenant, StoredTurn({"id": "resp_1", "status": status, "output": [SAID]}, [GIVEN]))
    return store


def referring(*items: Json) -> TurnRequest:
    return TurnRequest({"model": "m", "input": list(items)})


@pytest.mark.parametrize("reference", [{"type": "item_reference"}, {"type": None}, {}], ids=["typed", "null", "bare"])
async def test_reference_in_any_form_becomes_the_item_that_was_sent_or_answered(reference: Json) -> None:
    turn = referring({**reference, "id": "item 7"}, NEW, {**reference, "id": "msg_said"})

    got = await resolve_references(turn, await store_with())

    assert got.body == {"model": "m", "input": [GIVEN, NEW, SAID]}


async def test_item_that_is_referred_to_twice_is_there_twice_and_loaded_once() -> None:
    reference = {"type": "item_reference", "id": "msg_said"}
    got = await resolve_references(referring(*[reference] * 4), await store_with())

    assert got.body["input"] == [SAID] * 4


async def test_message_with_an_id_is_no_reference() -> None:
    turn = referring({"id": "msg_said", "role": "user", "content": "mine"}, {"id": "x", "type": "reasoning"})

    assert await resolve_references(turn, await store_with()) is turn


async def test_input_without_references_asks_no_store() -> None:
    store = MemoryStore()
    store.available = False
    for turn in (TurnRequest({"model": "m", "input": "Hi"}), referring(NEW), TurnRequest({"model": "m"})):
        assert await resolve_references(turn, store) is turn
    with pytest.raises(StoreError):
        await resolve_references(referring({"id": "msg_1"}), store)


@pytest.mark.parametrize(
    ("tenant", "status", "item_id"),
    [
        (DEFAULT_TENANT, "completed", "msg_none"),
        (DEFAULT_TENANT, "completed", "msg_\0"),
        (DEFAULT_TENANT, "completed", "msg_\ud83d"),
        (DEFAULT_TENANT, "failed", "msg_said"),
        ("other", "completed", "msg_said"),
    ],
)
async def test_item_that_cannot_be_had_answers_404_naming_it(tenant: str, status: str, item_id: str) -> None:
    store = await store_with(tenant=tenant, status=status)

    with pytest.raises(ClientError) as refused:
        await resolve_references(referring(NEW, {"type": "item_reference", "id": item_id}), store)

    error = refused.value
    assert (error.http_status, error.type, error.code, error.param, error.message) == (
        404,
        "invalid_request_error",
        None,
        "input",
        f"Item with id '{item_id}' not found.",
    )


async def test_more_references_than_the_store_allows_answer_400() -> None:
    references = [{"type": "item_reference", "id": f"msg_{number}"} for number in range(4)]

    with pytest.raises(ClientError) as refused:
        await resolve_references(referring(*references), await store_with())

    assert (refused.value.http_status, refused.value.code) == (400, "too_many_items")
