"""What every store does alike with conversations: the part of `StoreContract` that is about them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable

from attache_core.errors import ClientError
from attache_core.json_codec import Json
from attache_core.storage.conversations import Conversation, Lease
from attache_core.storage.store import Store, StoredTurn
from attache_core.types.paging import ItemPage, Page

AWKWARD_ITEM: Json = {
    "id": "msg_awkward",
    "z first": "NUL \0 inside, a lone surrogate \ud83d, a pair \U0001f600",
    "key \0 \udfff": [None, -0.0, 2**64 - 1, {"b": 1, "a": {}}],
}
"""JSON that databases, encoders and careless code have lost or changed."""


def item(item_id: str) -> Json:
    """A small item."""
    return {"id": item_id, "type": "message", "content": f"says {item_id}"}


def items(*item_ids: str) -> list[Json]:
    """Small items."""
    return [item(item_id) for item_id in item_ids]


def turn(response_id: str, given: str, answered: str, **fields: object) -> StoredTurn:
    """A turn of one item and its answer."""
    response: Json = {"id": response_id, "created_at": 1, "status": "completed", "output": items(answered)}
    return StoredTurn({**response, **fields}, items(given))


async def new_conversation(store: Store, *item_ids: str, tenant: str = "t", name: str = "conv_1") -> Conversation:
    """A conversation of these items."""
    conversation = Conversation(name, 1_760_000_000, {"topic": "test"})
    await store.conversations.create(tenant, conversation, items(*item_ids))
    return conversation


async def leased(store: Store, owner: str = "one", ttl_s: float = 60, tenant: str = "t") -> Lease:
    """The lease of `conv_1`, which is free."""
    lease = await store.conversations.lease(tenant, "conv_1", owner, ttl_s)
    assert lease is not None, "the conversation is held"
    return lease


async def ids(store: Store, name: str = "conv_1") -> list[str] | None:
    """What is in the conversation, oldest first."""
    page = await store.conversations.list_items("t", name, Page(limit=100, order="asc"))
    return None if page is None else [each["id"] for each in page.items]


class ConversationContract:
    """The suite; a subclass provides the fixture `store`."""

    async def test_conversation_is_loaded_as_it_was_created_or_updated(self, store: Store) -> None:
        """Metadata is replaced as a whole."""
        created = await new_conversation(store)
        assert await store.conversations.load("t", "conv_1") == created
        updated = Conversation("conv_1", created.created_at, {"a \0": "\ud83d"})
        assert await store.conversations.update("t", "conv_1", {"a \0": "\ud83d"}) == updated
        assert await store.conversations.load("t", "conv_1") == updated

    async def test_conversation_that_is_unknown_or_another_tenants_answers_nothing(self, store: Store) -> None:
        """Every call, and nothing is changed by any."""
        await new_conversation(store, "msg_1")
        lease = await leased(store)
        for tenant, name in (("other", "conv_1"), ("t", "conv_2"), ("t", "conv_\0"), ("t", ""), ("", "conv_1")):
            conversations = store.conversations
            assert await conversations.load(tenant, name) is None
            assert await conversations.update(tenant, name, {}) is None
            assert await conversations.list_items(tenant, name, Page()) is None
            assert await conversations.load_item(tenant, name, "msg_1") is None
            assert await conversations.load_history(tenant, name) is None
            assert not await conversations.add_items(tenant, name, items("msg_2"))
            assert not await conversations.remove_item(tenant, name, "msg_1")
            assert not await conversations.delete(tenant, name)
            assert await _refused(conversations.lease(tenant, name, "two", 1)) == (None, 404, "conversation")
        for tenant, name in (("other", "conv_1"), ("t", "conv_2")):
            assert not await store.conversations.renew(tenant, Lease(name, lease.owner, 0), 1)
            await store.conversations.release(tenant, Lease(name, lease.owner, 0))
        assert await store.conversations.load_items("other", ["msg_1"]) == {}
        assert await store.conversations.lease("t", "conv_1", "two", 1) is None
        assert await ids(store) == ["msg_1"]

    async def test_items_stay_in_the_order_in_which_they_were_added(self, store: Store) -> None:
        """Whatever their ids."""
        await new_conversation(store, "msg_9", "msg_5")
        assert await store.conversations.add_items("t", "conv_1", items("msg_7", "msg_1"))
        assert await ids(store) == ["msg_9", "msg_5", "msg_7", "msg_1"]
        assert await store.conversations.load_history("t", "conv_1") == items("msg_9", "msg_5", "msg_7", "msg_1")

    async def test_items_are_listed_page_by_page_in_either_order(self, store: Store) -> None:
        """The last page has no more after it, and neither has what comes after the last item."""
        await new_conversation(store, "msg_1", "msg_2", "msg_3")
        for page, expected in (
            (Page(2), ItemPage(items("msg_3", "msg_2"), True)),
            (Page(2, "msg_2"), ItemPage(items("msg_1"), False)),
            (Page(2, "msg_1"), ItemPage([], False)),
            (Page(2, order="asc"), ItemPage(items("msg_1", "msg_2"), True)),
            (Page(3, order="asc"), ItemPage(items("msg_1", "msg_2", "msg_3"), False)),
            (Page(1, "msg_1", "asc"), ItemPage(items("msg_2"), True)),
        ):
            assert await store.conversations.list_items("t", "conv_1", page) == expected

    async def test_page_after_an_item_that_is_not_there_answers_404(self, store: Store) -> None:
        """Never there, no key at all, or removed."""
        await new_conversation(store, "msg_1", "msg_2")
        await store.conversations.remove_item("t", "conv_1", "msg_2")
        for after in ("msg_2", "msg_3", "msg_\0", ""):
            listed = store.conversations.list_items("t", "conv_1", Page(after=after))
            assert await _refused(listed) == (None, 404, "after")

    async def test_item_is_added_to_a_conversation_once(self, store: Store) -> None:
        """Nothing of such a call is added; another conversation may have the same item, and one call may repeat it."""
        await new_conversation(store, "msg_1")
        added = store.conversations.add_items("t", "conv_1", items("msg_2", "msg_1"))
        assert await _refused(added) == ("item_already_in_conversation", 400, "items")
        assert await ids(store) == ["msg_1"]
        await new_conversation(store, "msg_1", "msg_1", name="conv_2")
        assert await ids(store, "conv_2") == ["msg_1", "msg_1"]

    async def test_item_of_any_json_survives_exactly_in_a_conversation(self, store: Store) -> None:
        """Also one whose id can be no key: it is there, and cannot be asked for."""
        odd: list[Json] = [{"id": "msg_\0", "n": 1}, {"id": "\ud83d"}, {"id": "msg_\0", "n": 2}]
        await new_conversation(store)
        assert await store.conversations.add_items("t", "conv_1", [AWKWARD_ITEM, *odd])
        history = await store.conversations.load_history("t", "conv_1")
        assert json.dumps(history) == json.dumps([AWKWARD_ITEM, *odd])
        for item_id in ("msg_\0", "\ud83d", ""):
            assert await store.conversations.load_item("t", "conv_1", item_id) is None
            assert not await store.conversations.remove_item("t", "conv_1", item_id)

    async def test_item_is_found_in_its_conversation_and_by_its_id_alone(self, store: Store) -> None:
        """Until it is removed from there."""
        await new_conversation(store, "msg_1", "msg_2")
        await new_conversation(store, "msg_3", name="conv_2")
        assert await store.conversations.load_item("t", "conv_1", "msg_2") == item("msg_2")
        assert await store.conversations.load_item("t", "conv_2", "msg_2") is None
        asked = ["msg_1", "msg_3", "msg_9", "msg_\0"]
        assert await store.conversations.load_items("t", asked) == {"msg_1": item("msg_1"), "msg_3": item("msg_3")}
        assert await store.conversations.remove_item("t", "conv_1", "msg_1")
        assert not await store.conversations.remove_item("t", "conv_1", "msg_1")
        assert await store.conversations.load_items("t", asked) == {"msg_3": item("msg_3")}
        assert await ids(store) == ["msg_2"]

    async def test_deleted_conversation_is_gone_with_its_items(self, store: Store) -> None:
        """Once."""
        await new_conversation(store, "msg_1")
        assert [await store.conversations.delete("t", "conv_1") for _ in range(2)] == [True, False]
        assert await store.conversations.load("t", "conv_1") is None
        assert await ids(store) is None
        assert await store.conversations.load_items("t", ["msg_1"]) == {}

    async def test_turn_is_saved_with_its_conversation(self, store: Store) -> None:
        """What was sent and what was answered come after all that is there, and the lease is over."""
        await new_conversation(store, "msg_0")
        saved = turn("resp_1", "msg_1", "msg_2")
        await store.save_turn("t", saved, await leased(store))
        assert await ids(store) == ["msg_0", "msg_1", "msg_2"]
        assert await store.load_turn("t", "resp_1") == saved
        assert (await leased(store, "two")).revision == 3

    async def test_turn_that_is_saved_again_changes_nothing(self, store: Store) -> None:
        """A retried save is no error, although its lease is over."""
        await new_conversation(store)
        lease = await leased(store)
        for _ in range(2):
            await store.save_turn("t", turn("resp_1", "msg_1", "msg_2"), lease)
        assert await ids(store) == ["msg_1", "msg_2"]

    async def test_turn_that_is_not_stored_may_add_its_items(self, store: Store) -> None:
        """`append` is the same without a response."""
        await new_conversation(store)
        await store.conversations.append("t", await leased(store), items("msg_1", "msg_2"))
        assert await ids(store) == ["msg_1", "msg_2"]
        assert (await leased(store, "two")).revision == 2

    async def test_one_turn_at_a_time_holds_a_conversation(self, store: Store) -> None:
        """Until it lets go."""
        await new_conversation(store)
        first = await leased(store, "one")
        assert await store.conversations.lease("t", "conv_1", "two", 60) is None
        assert await store.conversations.renew("t", first, 60)
        await store.conversations.release("t", first)
        second = await leased(store, "two")
        await store.conversations.release("t", first)
        assert not await store.conversations.renew("t", first, 60)
        assert await store.conversations.renew("t", second, 60)

    async def test_lease_that_nobody_renews_ends_by_itself(self, store: Store) -> None:
        """And whoever had it can add nothing once another has it."""
        await new_conversation(store)
        first = await leased(store, "one", ttl_s=0)
        second = await leased(store, "two")
        late = store.save_turn("t", turn("resp_1", "msg_1", "msg_2"), first)
        assert await _refused(late) == ("conversation_changed", 409, "conversation")
        assert await store.load_turn("t", "resp_1") is None
        await store.save_turn("t", turn("resp_2", "msg_3", "msg_4"), second)
        assert await ids(store) == ["msg_3", "msg_4"]

    async def test_turn_cannot_end_when_an_item_that_it_has_read_was_removed(self, store: Store) -> None:
        """Nothing of it is written; one that it has not read may come and go."""
        await new_conversation(store, "msg_1", "msg_2")
        lease = await leased(store)
        await store.conversations.add_items("t", "conv_1", items("msg_3", "msg_4"))
        await store.conversations.remove_item("t", "conv_1", "msg_3")
        await store.save_turn("t", turn("resp_1", "msg_5", "msg_6"), lease)
        assert await ids(store) == ["msg_1", "msg_2", "msg_4", "msg_5", "msg_6"]
        lease = await leased(store)
        await store.conversations.remove_item("t", "conv_1", "msg_2")
        late = store.save_turn("t", turn("resp_2", "msg_7", "msg_8"), lease)
        assert await _refused(late) == ("conversation_changed", 409, "conversation")
        assert await _refused(store.conversations.append("t", lease, items("msg_7"))) == (
            "conversation_changed",
            409,
            "conversation",
        )
        assert await store.load_turn("t", "resp_2") is None
        assert await ids(store) == ["msg_1", "msg_4", "msg_5", "msg_6"]

    async def test_turn_cannot_end_when_its_conversation_was_deleted(self, store: Store) -> None:
        """Nor does it make it anew."""
        await new_conversation(store)
        lease = await leased(store)
        await store.conversations.delete("t", "conv_1")
        late = store.save_turn("t", turn("resp_1", "msg_1", "msg_2"), lease)
        assert await _refused(late) == ("conversation_changed", 409, "conversation")
        assert await store.load_turn("t", "resp_1") is None
        assert await store.conversations.load("t", "conv_1") is None

    async def test_turn_cannot_add_what_is_there_already(self, store: Store) -> None:
        """Nothing of it is written, and it holds the conversation still."""
        await new_conversation(store, "msg_1")
        lease = await leased(store)
        assert await _refused(store.save_turn("t", turn("resp_1", "msg_1", "msg_2"), lease)) == (None, 400, "input")
        assert await store.load_turn("t", "resp_1") is None
        assert await ids(store) == ["msg_1"]
        assert await store.conversations.renew("t", lease, 60)

    async def test_turn_reads_the_conversation_as_it_was_when_it_began(self, store: Store) -> None:
        """Whatever came and went since."""
        await new_conversation(store, "msg_1", "msg_2")
        lease = await leased(store)
        await store.conversations.add_items("t", "conv_1", items("msg_3"))
        read = await store.conversations.load_history("t", "conv_1", lease.revision)
        assert read == items("msg_1", "msg_2")

    async def test_stored_response_keeps_what_it_had_read(self, store: Store) -> None:
        """When items are removed, and when the conversation is deleted."""
        await new_conversation(store, "msg_1", "msg_2")
        await store.save_turn("t", turn("resp_1", "msg_3", "msg_4"), await leased(store))
        await store.save_turn("t", turn("resp_2", "msg_5", "msg_6"), await leased(store, "two"))
        await store.conversations.remove_item("t", "conv_1", "msg_1")
        await store.conversations.remove_item("t", "conv_1", "msg_6")
        for _ in range(2):
            assert await store.conversations.load_history_of("t", "resp_1") == items("msg_1", "msg_2")
            read = await store.conversations.load_history_of("t", "resp_2")
            assert read == items("msg_1", "msg_2", "msg_3", "msg_4")
            await store.conversations.delete("t", "conv_1")
        for tenant, response_id in (("other", "resp_1"), ("t", "resp_9"), ("t", "resp_\0")):
            assert await store.conversations.load_history_of(tenant, response_id) == []

    async def test_deleted_response_leaves_its_items_in_the_conversation(self, store: Store) -> None:
        """They belong to the conversation; what the response had read is forgotten."""
        await new_conversation(store, "msg_0")
        await store.save_turn("t", turn("resp_1", "msg_1", "msg_2"), await leased(store))
        await store.delete_turn("t", "resp_1")
        assert await ids(store) == ["msg_0", "msg_1", "msg_2"]

    async def test_conversations_change_at_once_and_lose_nothing(self, store: Store) -> None:
        """Many clients, one conversation."""
        await new_conversation(store)
        async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
            for number in range(20):
                added = store.conversations.add_items("t", "conv_1", items(f"msg_{number}a", f"msg_{number}b"))
                tasks.create_task(_finish(added))
        there = await ids(store)
        assert there is not None
        assert sorted(there) == sorted(f"msg_{number}{side}" for number in range(20) for side in "ab")
        assert all(first[:-1] == second[:-1] for first, second in zip(there[::2], there[1::2], strict=True))


async def _finish(added: Awaitable[bool]) -> None:
    assert await added


async def _refused(call: Awaitable[object]) -> tuple[str | None, int, str | None]:
    try:
        await call
    except ClientError as error:
        return error.code, error.http_status, error.param
    raise AssertionError("it was not refused")
