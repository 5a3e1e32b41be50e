"""Every endpoint of a resource belongs to a tenant: another one's ids are as unknown as none at all."""

from __future__ import annotations

from typing import Any

import pytest

from attache_core.errors import ClientError
from attache_core.json_codec import Json, encode
from attache_core.storage import Conversation, StoredTurn
from attache_core.testing.memory_store import MemoryStore
from attache_core.types.extensions import NO_EXTENSIONS
from attache_core.types.paging import Page
from attache_filters.builtin.resources.endpoint import Call, Endpoint
from attache_filters.builtin.resources.endpoints import ENDPOINTS

ITEM: Json = {"id": "msg_1", "type": "message", "role": "user", "content": "secret"}
TURN = StoredTurn({"id": "resp_1", "status": "completed", "output": []}, [ITEM])
BODY: Json = {"metadata": {}, "items": [{"role": "user", "content": "x"}]}
IDS = {"responses": ("resp_1",), "conversations": ("conv_1", "msg_1")}


async def store_of(tenant: str) -> MemoryStore:
    store = MemoryStore()
    await store.save_turn(tenant, TURN)
    await store.conversations.create(tenant, Conversation("conv_1", 0, {"k": "v"}), [ITEM])
    return store


def call(store: MemoryStore, endpoint: Endpoint, tenant: str, body: Any = BODY) -> Call:
    kind = "responses" if "responses" in endpoint.path.pattern else "conversations"
    return Call(store, tenant, NO_EXTENSIONS, IDS[kind][: endpoint.path.groups], "", encode(body))


def named(endpoint: Endpoint) -> str:
    return f"{endpoint.method} {endpoint.path.pattern}"


WITH_ID = [endpoint for endpoint in ENDPOINTS if endpoint.path.groups]


@pytest.mark.parametrize("endpoint", WITH_ID, ids=named)
async def test_id_of_another_tenant_is_404_and_nothing_of_it_changes(endpoint: Endpoint) -> None:
    store = await store_of("theirs")

    with pytest.raises(ClientError) as refused:
        await endpoint.answer(call(store, endpoint, "ours"))

    assert refused.value.http_status == 404
    assert "secret" not in refused.value.message
    assert await store.load_turn("theirs", "resp_1") == TURN
    assert await store.conversations.load("theirs", "conv_1") == Conversation("conv_1", 0, {"k": "v"})
    page = await store.conversations.list_items("theirs", "conv_1", Page())
    assert page is not None
    assert page.items == [ITEM]


@pytest.mark.parametrize("endpoint", WITH_ID, ids=named)
async def test_id_of_the_tenant_itself_is_answered(endpoint: Endpoint) -> None:
    store = await store_of("ours")

    if endpoint.path.pattern.endswith("/cancel"):
        with pytest.raises(ClientError) as refused:
            await endpoint.answer(call(store, endpoint, "ours"))
        assert refused.value.http_status == 400
    else:
        assert (await endpoint.answer(call(store, endpoint, "ours"))).status == 200


async def test_item_of_another_tenant_can_be_added_to_no_conversation() -> None:
    store = await store_of("theirs")
    await store.conversations.create("ours", Conversation("conv_1", 0, {}), [])
    (add,) = [each for each in ENDPOINTS if each.method == "POST" and each.path.pattern.endswith("/items")]

    with pytest.raises(ClientError) as refused:
        await add.answer(call(store, add, "ours", {"items": [{"type": "item_reference", "id": "msg_1"}]}))

    assert (refused.value.http_status, refused.value.message) == (404, "Item with id 'msg_1' not found.")
