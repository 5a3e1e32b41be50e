"""What every store does alike: a suite that a store's own tests inherit.

    class TestMyStore(StoreContract, ApprovalContract):
        @pytest.fixture
        async def store(self) -> Store: ...    # new and empty for each test

Run by pytest with pytest-asyncio in auto mode; importing this module needs neither.
"""

from __future__ import annotations

import asyncio
import json
import random
import string
from collections.abc import Awaitable, Sequence

from attache_core.errors import ClientError
from attache_core.json_codec import Json
from attache_core.storage.approvals import ApprovalAnswer, PendingApproval
from attache_core.storage.limits import DEFAULT_LIMITS
from attache_core.storage.row import MAX_KEY_BYTES
from attache_core.storage.store import Store, StoredTurn
from attache_core.testing.conversation_contract import ConversationContract

AWKWARD: Json = {
    "z first": "NUL \0 inside, a lone surrogate \ud83d, a pair \U0001f600, a line separator \u2028",
    "key \0 \udfff": {"b": 1, "a": [None, True, {}, []]},
    "numbers": [0, -0.0, 1e-300, 2**53 + 1, -(2**63), 2**64 - 1],
    "": "",
}
"""JSON that databases, encoders and careless code have lost or changed."""


def stored_turn(response_id: str, previous_id: str | None = None, **fields: object) -> StoredTurn:
    """A small turn; `fields` are added to its response."""
    response: Json = {"id": response_id, "object": "response", "created_at": 1_760_000_000, "status": "completed"}
    response |= {"previous_response_id": previous_id, "output": [{"type": "message", "id": f"msg_{response_id}"}]}
    return StoredTurn(response={**response, **fields}, input=[{"type": "message", "content": f"say {response_id}"}])


def turn_of_items(
    response_id: str, given: Sequence[str], answered: Sequence[str], status: str = "completed"
) -> StoredTurn:
    """A turn with items of these ids; each item knows its turn and its side."""

    def items(side: str, ids: Sequence[str]) -> list[Json]:
        return [{"type": "message", "id": item_id, "content": f"{side} of {response_id}"} for item_id in ids]

    response: Json = {"id": response_id, "created_at": 1_760_000_000, "status": status, "previous_response_id": None}
    return StoredTurn({**response, "output": items("output", answered)}, items("input", given))


def random_text(size: int) -> str:
    """Text that no database can make shorter, the same in each run."""
    return "".join(random.Random(size).choices(string.ascii_letters, k=size))  # noqa: S311 - not a secret


class StoreContract(ConversationContract):
    """The suite; a subclass provides the fixture `store`."""

    async def test_load_with_unknown_id_answers_nothing(self, store: Store) -> None:
        """An unknown id is no error here: who asked decides what to tell."""
        assert await store.load_chain("t", "resp_none") == []
        assert await store.load_response("t", "resp_none") is None

    async def test_load_with_id_that_cannot_be_a_key_answers_nothing(self, store: Store) -> None:
        """Clients may send any JSON string as an id."""
        for response_id in ("", "resp_\0", "resp_\ud83d", "x" * 100_000, "' OR 1=1 --"):
            assert await store.load_chain("t", response_id) == []
            assert await store.load_response("t", response_id) is None

    async def test_saved_turn_is_loaded_whole(self, store: Store) -> None:
        """Input and response come back as they were."""
        turn = stored_turn("resp_1")
        await store.save_turn("t", turn)
        assert await store.load_chain("t", "resp_1") == [turn]
        assert await store.load_response("t", "resp_1") == turn.response

    async def test_turn_without_input_is_loaded_whole(self, store: Store) -> None:
        """A turn may have no input of its own."""
        turn = StoredTurn(response={"id": "resp_1"}, input=[])
        await store.save_turn("t", turn)
        assert await store.load_chain("t", "resp_1") == [turn]

    async def test_any_json_survives_exactly(self, store: Store) -> None:
        """Any Unicode, keys included, the order of keys, the kind and the digits of numbers."""
        turn = StoredTurn(
            response={**AWKWARD, "id": "resp_1", "created_at": 10**18 + 0.5, "status": []}, input=[AWKWARD]
        )
        await store.save_turn("t", turn)
        (loaded,) = await store.load_chain("t", "resp_1")
        assert json.dumps([loaded.response, loaded.input]) == json.dumps([turn.response, turn.input])

    async def test_chain_is_loaded_oldest_first(self, store: Store) -> None:
        """However the turns were interleaved with others, and up to the turn that was asked for."""
        turns = [stored_turn("resp_9"), stored_turn("resp_5", "resp_9"), stored_turn("resp_7", "resp_5")]
        for turn in turns:
            await store.save_turn("t", turn)
            await store.save_turn("t", stored_turn(f"other_{turn.response['id']}"))
        assert await store.load_chain("t", "resp_7") == turns
        assert await store.load_chain("t", "resp_5") == turns[:2]

    async def test_forks_share_their_history_only(self, store: Store) -> None:
        """Two turns may continue the same one."""
        root, left, right = stored_turn("resp_0"), stored_turn("resp_l", "resp_0"), stored_turn("resp_r", "resp_0")
        for turn in (root, left, right):
            await store.save_turn("t", turn)
        assert await store.load_chain("t", "resp_l") == [root, left]
        assert await store.load_chain("t", "resp_r") == [root, right]

    async def test_chain_whose_beginning_is_unknown_begins_later(self, store: Store) -> None:
        """What is not stored cannot be loaded; what is, is."""
        for previous_id in ("resp_none", "resp_\0", "\ud83d"):
            turn = stored_turn(f"resp_{len(previous_id)}", previous_id)
            await store.save_turn("t", turn)
            assert await store.load_chain("t", turn.response["id"]) == [turn]

    async def test_chain_in_a_circle_answers_chain_too_long(self, store: Store) -> None:
        """It cannot be written by this gateway; it must not hang one."""
        await store.save_turn("t", stored_turn("resp_1", "resp_1"))
        assert await _refused(store.load_chain("t", "resp_1")) == ("chain_too_long", 400, "previous_response_id")

    async def test_other_tenant_sees_nothing(self, store: Store) -> None:
        """Another tenant's id is as unknown as no id at all, at the end of a chain and inside it."""
        await store.save_turn("a", stored_turn("resp_1"))
        assert await store.load_chain("b", "resp_1") == []
        assert await store.load_response("b", "resp_1") is None
        follower = stored_turn("resp_2", "resp_1")
        await store.save_turn("b", follower)
        assert await store.load_chain("b", "resp_2") == [follower]

    async def test_same_id_of_two_tenants_is_two_turns(self, store: Store) -> None:
        """Tenants do not share a space of ids."""
        ours, theirs = stored_turn("resp_1", user="a"), stored_turn("resp_1", user="b")
        await store.save_turn("a", ours)
        await store.save_turn("b", theirs)
        assert (await store.load_response("a", "resp_1"), await store.load_response("b", "resp_1")) == (
            ours.response,
            theirs.response,
        )

    async def test_saving_an_id_again_changes_nothing(self, store: Store) -> None:
        """A retried save is no error; the first one stands."""
        first = stored_turn("resp_1")
        await store.save_turn("t", first)
        await store.save_turn("t", first)
        await store.save_turn("t", stored_turn("resp_1", "resp_0", user="other"))
        assert await store.load_chain("t", "resp_1") == [first]

    async def test_saving_without_a_usable_id_answers_value_error(self, store: Store) -> None:
        """Whoever saves gives the id."""
        for response in ({}, {"id": None}, {"id": ""}, {"id": "resp_\0"}, {"id": "\ud83d"}):
            assert await _raises_value_error(store, "t", StoredTurn(response=response, input=[]))
        assert await _raises_value_error(store, "", stored_turn("resp_1"))

    async def test_item_is_found_by_its_id_whoever_gave_it(self, store: Store) -> None:
        """Items of the input and of the output, as many as are asked for, whole."""
        turns = [turn_of_items("resp_1", ["msg_1", "item_x"], ["fc_1"]), turn_of_items("resp_2", ["msg_2"], ["rs_2"])]
        for turn in turns:
            await store.save_turn("t", turn)
        assert await store.load_items("t", ["rs_2", "msg_1", "item_x", "fc_1"]) == {
            "rs_2": turns[1].response["output"][0],
            "msg_1": turns[0].input[0],
            "item_x": turns[0].input[1],
            "fc_1": turns[0].response["output"][0],
        }

    async def test_item_that_is_not_stored_is_left_out(self, store: Store) -> None:
        """Unknown, another tenant's, or no id at all: it is for the caller to say what that means."""
        await store.save_turn("t", turn_of_items("resp_1", ["msg_1"], []))
        await store.save_turn("other", turn_of_items("resp_2", ["msg_2"], []))
        awkward = ["", "msg_\0", "msg_\ud83d", "x" * 100_000, "' OR 1=1 --", "resp_1"]
        assert await store.load_items("t", ["msg_2", "msg_3", *awkward]) == {}
        assert await store.load_items("t", []) == {}
        assert list(await store.load_items("t", ["msg_1", "msg_2"])) == ["msg_1"]

    async def test_same_item_id_of_two_tenants_is_two_items(self, store: Store) -> None:
        """Tenants do not share a space of ids, nor of response ids."""
        ours, theirs = (turn_of_items("resp_1", ["msg_1"], [], status=status) for status in ("completed", "incomplete"))
        theirs.input[0]["content"] = "theirs"
        await store.save_turn("a", ours)
        await store.save_turn("b", theirs)
        assert await store.load_items("a", ["msg_1"]) == {"msg_1": ours.input[0]}
        assert await store.load_items("b", ["msg_1"]) == {"msg_1": theirs.input[0]}

    async def test_item_of_several_turns_is_the_latest(self, store: Store) -> None:
        """Clients send items again; within one turn the last of that id counts. Other items stay where they are."""
        old, new = turn_of_items("resp_9", ["msg_1", "msg_2"], []), turn_of_items("resp_1", ["msg_1"], ["msg_1"])
        await store.save_turn("t", old)
        await store.save_turn("t", new)
        assert await store.load_items("t", ["msg_1", "msg_2"]) == {
            "msg_1": new.response["output"][0],
            "msg_2": old.input[1],
        }

    async def test_item_of_a_failed_or_cancelled_turn_is_not_found(self, store: Store) -> None:
        """Nor does it hide the one of that id that was stored before."""
        good = turn_of_items("resp_1", ["msg_1"], [])
        await store.save_turn("t", good)
        for response_id, status in (("resp_2", "failed"), ("resp_3", "cancelled")):
            await store.save_turn("t", turn_of_items(response_id, ["msg_1", "msg_2"], ["fc_2"], status=status))
            assert await store.load_items("t", ["msg_1", "msg_2", "fc_2"]) == {"msg_1": good.input[0]}

    async def test_item_of_a_turn_saved_again_stays_as_it_was(self, store: Store) -> None:
        """The turn that stands is the one whose items are found."""
        first = turn_of_items("resp_1", ["msg_1"], [])
        await store.save_turn("t", first)
        await store.save_turn("t", turn_of_items("resp_1", ["msg_1", "msg_2"], ["fc_2"]))
        assert await store.load_items("t", ["msg_1", "msg_2", "fc_2"]) == {"msg_1": first.input[0]}

    async def test_item_of_any_json_survives_exactly(self, store: Store) -> None:
        """As `test_any_json_survives_exactly`; an item without an id that can be a key is stored, and never found."""
        item = {**AWKWARD, "id": "msg_1"}
        no_keys: list[object] = [None, 7, "", "\0", "\ud83d", []]
        odd: list[Json] = [{"id": value} for value in no_keys]
        turn = StoredTurn(response={"id": "resp_1", "output": [*odd, AWKWARD]}, input=[*odd, item])
        await store.save_turn("t", turn)
        assert json.dumps(await store.load_items("t", ["msg_1"])) == json.dumps({"msg_1": item})
        assert await store.load_chain("t", "resp_1") == [turn]

    async def test_item_whose_id_is_too_long_for_a_key_is_stored_and_never_found(self, store: Store) -> None:
        """Databases index no text of any length; a client's odd id must not cost the turn."""
        longest, too_long = (random_text(size) for size in (MAX_KEY_BYTES, MAX_KEY_BYTES + 1))
        turn = turn_of_items("resp_1", [longest, too_long, random_text(100_000), "é" * MAX_KEY_BYTES], [])
        await store.save_turn("t", turn)
        assert await store.load_items("t", [item["id"] for item in turn.input]) == {longest: turn.input[0]}
        assert await store.load_chain("t", "resp_1") == [turn]

    async def test_turns_saved_at_once_with_the_same_items_all_succeed(self, store: Store) -> None:
        """In whatever order each of them names the items, none waits for another that waits for it."""
        names = [f"msg_{number}" for number in range(50)]
        async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
            for number in range(10):
                given = names if number % 2 else names[::-1]
                tasks.create_task(store.save_turn("t", turn_of_items(f"resp_{number}", given, [])))
        found = await store.load_items("t", names)
        assert sorted(found) == sorted(names)

    async def test_many_items_of_a_turn_are_loaded_in_one_call(self, store: Store) -> None:
        """As many as the limits allow by default; one more is refused, whether it exists or not."""
        names = [f"msg_{number}" for number in range(DEFAULT_LIMITS.max_items)]
        turn = turn_of_items("resp_1", names, [])
        await store.save_turn("t", turn)
        assert await store.load_items("t", names) == dict(zip(names, turn.input, strict=True))
        assert await _refused(store.load_items("t", [*names, "msg_x"])) == ("too_many_items", 400, "input")

    async def test_turn_is_loaded_alone(self, store: Store) -> None:
        """Not what it continues, and not for another tenant."""
        turns = [stored_turn("resp_1"), stored_turn("resp_2", "resp_1")]
        for turn in turns:
            await store.save_turn("t", turn)
        assert await store.load_turn("t", "resp_2") == turns[1]
        for tenant, response_id in (("other", "resp_2"), ("t", "resp_3"), ("t", "resp_\0"), ("t", "")):
            assert await store.load_turn(tenant, response_id) is None

    async def test_deleted_turn_is_gone_with_all_that_led_to_it(self, store: Store) -> None:
        """Its response, its items, the way to it; nothing else."""
        kept, deleted = turn_of_items("resp_1", ["msg_1"], []), turn_of_items("resp_2", ["msg_2"], ["msg_3"])
        for turn in (kept, deleted):
            await store.save_turn("t", turn)
        assert await store.delete_turn("t", "resp_2")
        assert await store.load_response("t", "resp_2") is None
        assert await store.load_turn("t", "resp_2") is None
        assert await store.load_chain("t", "resp_2") == []
        assert await store.load_items("t", ["msg_1", "msg_2", "msg_3"]) == {"msg_1": kept.input[0]}
        assert await store.load_chain("t", "resp_1") == [kept]

    async def test_turn_is_deleted_once_and_by_its_tenant_alone(self, store: Store) -> None:
        """An id that is unknown is no error: who asked decides what to tell."""
        await store.save_turn("t", stored_turn("resp_1"))
        for tenant, response_id in (("other", "resp_1"), ("t", "resp_2"), ("t", "resp_\0"), ("", "resp_1")):
            assert not await store.delete_turn(tenant, response_id)
        assert [await store.delete_turn("t", "resp_1") for _ in range(2)] == [True, False]

    async def test_turn_that_continues_a_deleted_one_stays(self, store: Store) -> None:
        """Its chain begins after the gap, and its item keeps its id though a deleted turn had one alike."""
        first, second = turn_of_items("resp_1", ["msg_1"], []), turn_of_items("resp_2", ["msg_1"], [])
        second.response["previous_response_id"] = "resp_1"
        for turn in (first, second):
            await store.save_turn("t", turn)
        await store.delete_turn("t", "resp_1")
        assert await store.load_chain("t", "resp_2") == [second]
        assert await store.load_items("t", ["msg_1"]) == {"msg_1": second.input[0]}

    async def test_what_was_stored_does_not_change_with_its_origin(self, store: Store) -> None:
        """Neither what was saved nor what was loaded is the stored object itself."""
        turn = stored_turn("resp_1")
        await store.save_turn("t", turn)
        turn.response["status"] = "changed"
        turn.input[0]["content"] = "changed"
        (loaded,) = await store.load_chain("t", "resp_1")
        loaded.response["output"].clear()
        assert await store.load_chain("t", "resp_1") == [stored_turn("resp_1")]

    async def test_concurrent_saves_all_succeed(self, store: Store) -> None:
        """Different ids, and one id many times."""
        async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
            for number in range(20):
                tasks.create_task(store.save_turn("t", stored_turn(f"resp_{number}")))
                tasks.create_task(store.save_turn("t", stored_turn("resp_same")))
        for response_id in [*(f"resp_{number}" for number in range(20)), "resp_same"]:
            assert await store.load_chain("t", response_id) == [stored_turn(response_id)]

    async def test_check_of_a_working_store_answers(self, store: Store) -> None:
        """No error is the answer."""
        await store.check()


SALT = b"\0\xff salt"


def pending(request_id: str, fingerprint: str = "print") -> PendingApproval:
    """An approval that waits."""
    return PendingApproval(request_id, SALT, fingerprint)


def approved(request_id: str, fingerprint: str = "print") -> ApprovalAnswer:
    """The user said yes, to a call of this fingerprint."""
    return ApprovalAnswer(request_id, fingerprint)


def denied(request_id: str) -> ApprovalAnswer:
    """The user said no."""
    return ApprovalAnswer(request_id, None)


class ApprovalContract:
    """What the approvals of every store do alike; a subclass provides the fixture `store`."""

    async def test_approvals_are_loaded_as_they_were_asked_for(self, store: Store) -> None:
        """Those of the ids that are known, of that tenant, whether their response is stored yet or not."""
        await store.approvals.ask("t", "resp_1", [pending("mcpr_1"), pending("mcpr_2", "other")])
        await store.approvals.ask("other", "resp_1", [pending("mcpr_3")])
        awkward = ["", "mcpr_\0", "mcpr_\ud83d", "x" * 100_000, "' OR 1=1 --"]
        assert await store.approvals.load("t", ["mcpr_2", "mcpr_1", "mcpr_3", "mcpr_4", *awkward]) == {
            "mcpr_1": pending("mcpr_1"),
            "mcpr_2": pending("mcpr_2", "other"),
        }
        assert await store.approvals.load("t", []) == {}

    async def test_approval_is_answered_once(self, store: Store) -> None:
        """By a yes and by a no alike, whatever is said after it."""
        await store.save_turn("t", stored_turn("resp_1"))
        await store.approvals.ask("t", "resp_1", [pending("mcpr_1"), pending("mcpr_2")])
        assert await store.approvals.answer("t", [approved("mcpr_1")])
        assert await store.approvals.answer("t", [denied("mcpr_2")])
        for again in (approved("mcpr_1"), denied("mcpr_1"), approved("mcpr_2"), denied("mcpr_2")):
            assert not await store.approvals.answer("t", [again])
        loaded = await store.approvals.load("t", ["mcpr_1", "mcpr_2"])
        assert [one.answered for one in loaded.values()] == [True, True]

    async def test_answers_are_taken_together_or_not_at_all(self, store: Store) -> None:
        """One that cannot be taken, wherever it stands, leaves the others waiting."""
        await store.save_turn("t", stored_turn("resp_1"))
        await store.approvals.ask("t", "resp_1", [pending("mcpr_1"), pending("mcpr_2")])
        for wrong in (approved("mcpr_0"), approved("mcpr_9"), approved("mcpr_2", "changed"), approved("mcpr_1")):
            assert not await store.approvals.answer("t", [approved("mcpr_1"), wrong])
        assert await store.approvals.answer("t", [approved("mcpr_2"), denied("mcpr_1")])

    async def test_answer_to_another_call_is_not_taken(self, store: Store) -> None:
        """What is approved is what was asked for; a denial is of whatever was."""
        await store.save_turn("t", stored_turn("resp_1"))
        await store.approvals.ask("t", "resp_1", [pending("mcpr_1")])
        assert not await store.approvals.answer("t", [approved("mcpr_1", "changed")])
        assert not await store.approvals.answer("t", [approved("mcpr_\0")])
        assert await store.approvals.answer("t", [denied("mcpr_1")])

    async def test_answer_of_another_tenant_is_not_taken(self, store: Store) -> None:
        """Also where that tenant has a response of the same id."""
        for tenant in ("a", "b"):
            await store.save_turn(tenant, stored_turn("resp_1"))
        await store.approvals.ask("a", "resp_1", [pending("mcpr_1")])
        assert await store.approvals.load("b", ["mcpr_1"]) == {}
        assert not await store.approvals.answer("b", [approved("mcpr_1")])
        assert not await store.approvals.answer("b", [denied("mcpr_1")])
        assert await store.approvals.answer("a", [approved("mcpr_1")])

    async def test_answer_to_a_response_that_cannot_be_continued_is_not_taken(self, store: Store) -> None:
        """It is not stored, another tenant's, failed or cancelled."""
        await store.save_turn("other", stored_turn("resp_1"))
        await store.save_turn("t", stored_turn("resp_2", status="failed"))
        await store.save_turn("t", stored_turn("resp_3", status="cancelled"))
        for response_id in ("resp_1", "resp_2", "resp_3"):
            await store.approvals.ask("t", response_id, [pending(f"mcpr_{response_id}")])
            assert not await store.approvals.answer("t", [approved(f"mcpr_{response_id}")])
        await store.save_turn("t", stored_turn("resp_1", status="incomplete"))
        assert await store.approvals.answer("t", [approved("mcpr_resp_1")])

    async def test_of_many_answers_at_once_one_is_taken(self, store: Store) -> None:
        """Whoever comes first; the others are told, and nobody waits for anybody for ever."""
        await store.save_turn("t", stored_turn("resp_1"))
        await store.approvals.ask("t", "resp_1", [pending("mcpr_1"), pending("mcpr_2")])
        both = [approved("mcpr_1"), denied("mcpr_2")]
        async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
            said = [
                tasks.create_task(store.approvals.answer("t", both if number % 2 else both[::-1]))
                for number in range(10)
            ]
        assert sorted(one.result() for one in said) == [False] * 9 + [True]

    async def test_approvals_go_with_their_response(self, store: Store) -> None:
        """Those of one response of one tenant."""
        for tenant, response_id in (("t", "resp_1"), ("t", "resp_2"), ("other", "resp_1")):
            await store.save_turn(tenant, stored_turn(response_id))
            await store.approvals.ask(tenant, response_id, [pending(f"mcpr_{response_id}")])
        assert await store.delete_turn("t", "resp_1")
        assert await store.approvals.load("t", ["mcpr_resp_1"]) == {}
        assert not await store.approvals.answer("t", [approved("mcpr_resp_1")])
        assert await store.approvals.answer("t", [approved("mcpr_resp_2")])
        assert await store.approvals.answer("other", [approved("mcpr_resp_1")])

    async def test_too_many_approvals_at_once_answer_400(self, store: Store) -> None:
        """The bound is that of items."""
        names = [f"mcpr_{number}" for number in range(DEFAULT_LIMITS.max_items + 1)]
        assert await _refused(store.approvals.load("t", names)) == ("too_many_items", 400, "input")


async def _refused(load: Awaitable[object]) -> tuple[str | None, int, str | None]:
    try:
        await load
    except ClientError as error:
        return error.code, error.http_status, error.param
    raise AssertionError("it was loaded")


async def _raises_value_error(store: Store, tenant: str, turn: StoredTurn) -> bool:
    try:
        await store.save_turn(tenant, turn)
    except ValueError:
        return True
    return False
