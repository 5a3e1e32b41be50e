"""What every store does alike with turns whose time is over: a suite that a store's own tests inherit.

class TestMyStore(RetentionContract):
    @pytest.fixture
    async def store(self) -> Store: ...    # new and empty for each test, with RETENTION
"""

from __future__ import annotations

import time

from attache_core.json_codec import Json
from attache_core.storage.approvals import ApprovalAnswer, PendingApproval
from attache_core.storage.conversations import Conversation
from attache_core.storage.limits import StoreLimits
from attache_core.storage.store import Store, StoredTurn

RETENTION = StoreLimits(retention_days=1)
DAY_S = 86_400


def turn_aged(response_id: str, age_s: float, previous_id: str | None = None, *, with_time: bool = True) -> StoredTurn:
    """A turn that was created `age_s` seconds ago, with one item in and one out."""
    created: Json = {"created_at": int(time.time() - age_s)} if with_time else {}
    answered = {"type": "message", "id": f"msg_out_{response_id}"}
    response: Json = {"id": response_id, **created, "status": "completed", "previous_response_id": previous_id}
    return StoredTurn({**response, "output": [answered]}, [{"type": "message", "id": f"msg_in_{response_id}"}])


class RetentionContract:
    """The suite; a subclass provides the fixture `store`."""

    async def test_turn_whose_time_is_over_is_unknown_before_it_is_removed(self, store: Store) -> None:
        """To every call, as if it had been deleted."""
        await store.save_turn("t", turn_aged("resp_1", DAY_S + 60))
        await store.approvals.ask("t", "resp_1", [PendingApproval("mcpr_1", b"salt", "f")])

        assert await store.load_response("t", "resp_1") is None
        assert await store.load_turn("t", "resp_1") is None
        assert await store.load_chain("t", "resp_1") == []
        assert await store.load_items("t", ["msg_in_resp_1", "msg_out_resp_1"]) == {}
        assert not await store.approvals.answer("t", [ApprovalAnswer("mcpr_1", "f")])
        assert not await store.delete_turn("t", "resp_1")

    async def test_turn_is_there_for_its_whole_time(self, store: Store) -> None:
        """A minute before its end, and where nobody knows when it began."""
        young, undated = turn_aged("resp_1", DAY_S - 60), turn_aged("resp_2", 0, with_time=False)
        for turn in (young, undated):
            await store.save_turn("t", turn)

        assert await store.remove_expired() == 0
        assert [await store.load_turn("t", name) for name in ("resp_1", "resp_2")] == [young, undated]

    async def test_chain_begins_after_a_turn_whose_time_is_over(self, store: Store) -> None:
        """Removed by then or not."""
        turns = [turn_aged("resp_1", DAY_S + 60), turn_aged("resp_2", 60, "resp_1"), turn_aged("resp_3", 0, "resp_2")]
        for turn in turns:
            await store.save_turn("t", turn)

        assert await store.load_chain("t", "resp_3") == turns[1:]
        assert await store.remove_expired() == 1
        assert await store.load_chain("t", "resp_3") == turns[1:]

    async def test_removal_takes_all_that_leads_to_a_turn_and_nothing_else(self, store: Store) -> None:
        """Of every tenant."""
        old, young = turn_aged("resp_1", DAY_S + 60), turn_aged("resp_2", 60)
        for tenant in ("t", "u"):
            for turn in (old, young):
                name = turn.response["id"]
                await store.save_turn(tenant, turn)
                await store.approvals.ask(tenant, name, [PendingApproval(f"mcpr_{name}", b"salt", "f")])

        assert await store.remove_expired() == 2
        assert await store.remove_expired() == 0
        for tenant in ("t", "u"):
            assert await store.load_turn(tenant, "resp_2") == young
            asked = await store.approvals.load(tenant, ["mcpr_resp_1", "mcpr_resp_2"])
            assert list(asked) == ["mcpr_resp_2"]
            found = await store.load_items(tenant, ["msg_in_resp_1", "msg_in_resp_2", "msg_out_resp_2"])
            assert sorted(found) == ["msg_in_resp_2", "msg_out_resp_2"]

    async def test_item_that_a_younger_turn_holds_too_stays(self, store: Store) -> None:
        """Its id led to the younger one."""
        shared: Json = {"type": "message", "id": "msg_shared"}
        for turn in (turn_aged("resp_1", DAY_S + 60), turn_aged("resp_2", 60)):
            await store.save_turn("t", StoredTurn(turn.response, [shared]))

        assert await store.remove_expired() == 1
        assert await store.load_items("t", ["msg_shared"]) == {"msg_shared": shared}

    async def test_items_of_a_conversation_stay_when_its_response_is_removed(self, store: Store) -> None:
        """As when it is deleted; what was taken out of it goes with the last response that had read it."""
        before: Json = {"type": "message", "id": "msg_before"}
        await store.conversations.create("t", Conversation("conv_1", 0, {}), [before])
        lease = await store.conversations.lease("t", "conv_1", "owner", 60)
        assert lease is not None
        turn = turn_aged("resp_1", DAY_S + 60)
        await store.save_turn("t", turn, lease)
        await store.conversations.remove_item("t", "conv_1", "msg_before")

        assert await store.remove_expired() == 1
        assert await store.conversations.load_history("t", "conv_1") == [*turn.input, *turn.response["output"]]
