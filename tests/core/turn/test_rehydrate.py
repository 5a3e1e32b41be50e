from __future__ import annotations

from typing import Any

import pytest

from attache_core.errors import ClientError
from attache_core.json_codec import Json
from attache_core.storage import StoredTurn
from attache_core.testing.memory_store import MemoryStore
from attache_core.turn.rehydrate import rehydrate
from attache_core.types.turn import DEFAULT_TENANT, TurnRequest


def message(role: str, text: str) -> Json:
    return {"id": f"msg_{text}", "type": "message", "role": role, "content": text}


def call(arguments: str = "{}", status: str = "completed") -> Json:
    return {
        "id": "fc_1",
        "type": "function_call",
        "call_id": "c",
        "name": "f",
        "arguments": arguments,
        "status": status,
    }


def turn(response_id: str, previous: str | None, *output: Json, status: str = "completed") -> StoredTurn:
    response = {
        "id": response_id,
        "previous_response_id": previous,
        "created_at": 0,
        "status": status,
        "output": list(output),
        "instructions": "be brief",
    }
    return StoredTurn(response, [message("user", f"to {response_id}")])


async def store_with(*turns: StoredTurn, tenant: str = DEFAULT_TENANT) -> MemoryStore:
    store = MemoryStore()
    for stored in turns:
        await store.save_turn(tenant, stored)
    return store


def continuing(previous: str | None, **body: Any) -> TurnRequest:
    return TurnRequest({"model": "m", "input": "next", "previous_response_id": previous, **body})


async def test_turn_without_previous_response_keeps_its_input_as_it_is() -> None:
    got = await rehydrate(continuing(None), MemoryStore())

    assert (got.body["input"], got.facts.history_items) == ("next", 0)


async def test_history_is_every_item_of_every_ancestor_in_order() -> None:
    called = {
        "type": "function_call",
        "id": "fc_1",
        "call_id": "c",
        "name": "f",
        "arguments": "{}",
        "status": "completed",
    }
    output = {"type": "function_call_output", "call_id": "c", "output": "x"}
    store = await store_with(turn("resp_1", None, message("assistant", "one")), turn("resp_2", "resp_1", called))

    got = await rehydrate(continuing("resp_2", input=[output]), store)

    assert got.body["input"] == [
        message("user", "to resp_1"),
        message("assistant", "one"),
        message("user", "to resp_2"),
        called,
        output,
    ]
    assert got.facts.history_items == 4
    assert "instructions" not in got.body


async def test_call_that_was_cut_off_is_not_part_of_the_history() -> None:
    cut = {
        "type": "function_call",
        "id": "fc_1",
        "call_id": "c",
        "name": "f",
        "arguments": '{"a',
        "status": "incomplete",
    }
    store = await store_with(turn("resp_1", None, cut, status="incomplete"))

    got = await rehydrate(continuing("resp_1"), store)

    assert [item["type"] for item in got.body["input"]] == ["message", "message"]


@pytest.mark.parametrize("status", ["completed", "incomplete"])
async def test_response_without_output_is_continued_from_its_input(status: str) -> None:
    store = await store_with(turn("resp_1", None, message("assistant", "one")), turn("resp_2", "resp_1", status=status))

    got = await rehydrate(continuing("resp_2", input=[message("user", "next")]), store)

    assert got.body["input"] == [
        message("user", "to resp_1"),
        message("assistant", "one"),
        message("user", "to resp_2"),
        message("user", "next"),
    ]


@pytest.mark.parametrize("tenant", [DEFAULT_TENANT, "other"])
async def test_unknown_or_foreign_previous_response_answers_400_with_its_own_code(tenant: str) -> None:
    store = await store_with(turn("resp_1", None), tenant=tenant)
    wanted = "resp_0" if tenant == DEFAULT_TENANT else "resp_1"

    with pytest.raises(ClientError) as refused:
        await rehydrate(continuing(wanted), store)

    error = refused.value
    assert (error.http_status, error.code, error.param) == (400, "previous_response_not_found", "previous_response_id")
    assert error.message == f"Previous response with id '{wanted}' not found."


@pytest.mark.parametrize("status", ["failed", "in_progress", "cancelled"])
async def test_response_that_did_not_end_well_cannot_be_continued(status: str) -> None:
    store = await store_with(turn("resp_1", None, status=status))

    with pytest.raises(ClientError) as refused:
        await rehydrate(continuing("resp_1"), store)

    assert (refused.value.http_status, refused.value.code) == (400, "previous_response_not_continuable")


async def test_pending_call_of_the_history_must_be_answered() -> None:
    called = {
        "type": "function_call",
        "id": "fc_1",
        "call_id": "c",
        "name": "f",
        "arguments": "{}",
        "status": "completed",
    }
    store = await store_with(turn("resp_1", None, called))

    with pytest.raises(ClientError, match="No tool output found for function call c"):
        await rehydrate(continuing("resp_1"), store)


async def test_reference_becomes_the_item_in_front_of_any_check_of_calls() -> None:
    store = await store_with(turn("resp_1", None, call()))
    output = {"type": "function_call_output", "call_id": "c", "output": "x"}

    got = await rehydrate(continuing(None, input=[{"type": "item_reference", "id": "fc_1"}, output]), store)

    assert (got.body["input"], got.facts.history_items) == ([call(), output], 0)


async def test_reference_beside_a_previous_response_stands_in_the_new_input() -> None:
    store = await store_with(turn("resp_1", None, message("assistant", "one")), turn("resp_2", None))

    got = await rehydrate(continuing("resp_2", input=[{"id": "msg_one"}]), store)

    assert got.body["input"] == [message("user", "to resp_2"), message("assistant", "one")]
    assert got.facts.history_items == 1


async def test_response_whose_ancestor_was_deleted_cannot_be_continued() -> None:
    store = await store_with(turn("resp_1", None), turn("resp_2", "resp_1"), turn("resp_3", "resp_2"))
    await store.delete_turn(DEFAULT_TENANT, "resp_1")

    with pytest.raises(ClientError) as refused:
        await rehydrate(continuing("resp_3"), store)

    error = refused.value
    assert (error.http_status, error.code, error.param) == (
        400,
        "previous_response_not_found",
        "previous_response_id",
    )
    assert error.message == (
        "Previous response with id 'resp_3' continues from a response that was deleted, and cannot be continued: "
        "send the whole conversation as 'input' instead."
    )


@pytest.mark.parametrize("named", ["conv_1", {"id": "conv_1"}])
async def test_conversation_answers_404_naming_it(named: Any) -> None:
    with pytest.raises(ClientError) as refused:
        await rehydrate(continuing(None, conversation=named), MemoryStore())

    error = refused.value
    assert (error.http_status, error.code, error.param) == (404, None, "conversation")
    assert error.message == "Conversation with id 'conv_1' not found."
