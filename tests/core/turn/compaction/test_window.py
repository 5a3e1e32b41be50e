"""What the model is told of a conversation, and what of it gives way to a summary."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attache_core.errors import ClientError
from attache_core.json_codec import Json
from attache_core.turn.compaction.checkpoint import Checkpoint, compaction_item
from attache_core.turn.compaction.seal import Seal
from attache_core.turn.compaction.settings import CompactionKey
from attache_core.turn.compaction.terms import CompactionTerms
from attache_core.turn.compaction.tokens import MEDIA_TOKENS, item_tokens
from attache_core.turn.compaction.window import CONTINUE, Division, Window, everything, open_window, outgrown
from attache_core.turn.pending_calls import check_calls

SEAL = Seal([CompactionKey.read(base64.b64encode(b"k" * 32).decode())])
TERMS = CompactionTerms(bytes_per_token=1)


def user(said: str) -> Json:
    return {"type": "message", "role": "user", "content": said}


def assistant(said: str) -> Json:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": said}]}


def called(call_id: str, output: str = "done") -> list[Json]:
    return [
        {"type": "reasoning", "summary": []},
        {"type": "function_call", "call_id": call_id, "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": call_id, "output": output},
    ]


def sealed(summary: str, *before: Json) -> Json:
    return compaction_item("cmp_1", SEAL.close("default", Checkpoint(before, summary)))


def opened(*items: Json) -> Window:
    return open_window(items, SEAL, "default")


def test_conversation_without_a_checkpoint_is_told_as_it_is() -> None:
    items = (user("Hi"), assistant("Hello"))
    assert opened(*items) == Window(items, newer=2, triggered=False)


def test_latest_checkpoint_stands_for_all_that_is_before_it() -> None:
    altered = compaction_item("cmp_0", "whatever it is, it is not looked at")
    window = opened(user("old"), altered, user("older"), sealed("Summary.", user("kept")), user("new"))
    assert window == Window((user("kept"), assistant("Summary."), user("new")), newer=1, triggered=False)


def test_summary_that_nothing_of_the_users_precedes_is_told_as_the_users() -> None:
    orders = {"type": "message", "role": "developer", "content": "Be brief."}
    assert opened(sealed("Summary.", orders), user("new")).items == (orders, user("Summary."), user("new"))


def test_trigger_is_seen_at_the_end_and_told_nowhere() -> None:
    trigger = {"type": "compaction_trigger"}
    assert opened(user("a"), trigger) == Window((user("a"),), newer=1, triggered=True)
    assert opened(user("a"), trigger, user("b")) == Window((user("a"), user("b")), newer=2, triggered=False)


def test_window_under_its_threshold_is_left_alone() -> None:
    assert outgrown(opened(user("a" * 900)), 0, 1000, TERMS) is None


def test_instructions_and_tools_count_for_the_threshold() -> None:
    window = opened(user("a" * 600), assistant("b"), user("c"))
    assert outgrown(window, 0, 1000, TERMS) is None
    assert outgrown(window, 500, 1000, TERMS) is not None


def test_what_is_newest_stays_and_so_do_short_messages_of_the_user_and_orders() -> None:
    orders = {"type": "message", "role": "system", "content": "Be brief." * 50}
    old = (orders, user("short"), assistant("a" * 900), user("b" * 900), assistant("c"))
    newest = (user("and now?"),)

    assert outgrown(opened(*old, *newest), 0, 1000, TERMS) == Division(old, (orders, user("short")), newest)


def test_call_that_is_being_worked_on_stays_with_its_output() -> None:
    items = (user("Do it."), *called("call_1", "x" * 2000), *called("call_2"))
    division = outgrown(opened(*items), 0, 1600, TERMS)
    assert division == Division(items[:4], (user("Do it."),), items[4:])


def test_user_has_the_last_word_where_what_is_newest_is_too_large_to_stay() -> None:
    items = (user("Do it."), *called("call_1", "x" * 2000))
    assert outgrown(opened(*items), 0, 1000, TERMS) == Division(items, (), (user("Do it."),))


def test_newest_message_of_the_user_stays_however_large_it_is() -> None:
    old, newest = (user("short"), assistant("a" * 400)), user("Do it. " * 200)
    assert outgrown(opened(*old, newest), 0, 1000, TERMS) == Division(old, (user("short"),), (newest,))
    assert outgrown(opened(newest), 0, 1000, TERMS) is None


def test_newest_message_of_the_user_stays_before_the_summary_of_what_came_of_it() -> None:
    asked = user("Do it. " * 200)
    items = (asked, *called("call_1", "x" * 2000), *called("call_2"))
    assert outgrown(opened(*items), 0, 1600, TERMS) == Division(items[:4], (asked,), items[4:])


def test_model_is_told_to_continue_where_there_is_no_message_of_the_user() -> None:
    items = tuple(called("call_1", "x" * 2000))
    assert outgrown(opened(*items), 0, 1000, TERMS) == Division(items, (), (user(CONTINUE),))


def test_window_whose_calls_nobody_has_checked_is_left_alone_where_it_cannot_be_cut() -> None:
    assert outgrown(opened(*called("call_1")[:2], assistant("a" * 2000), user("b")), 0, 1000, TERMS) is None


def test_no_new_checkpoint_is_made_until_a_quarter_of_the_threshold_has_come_since_the_last() -> None:
    checkpoint = sealed("s" * 900, user("kept"))
    assert outgrown(opened(checkpoint, user("a" * 100)), 0, 1000, TERMS) is None
    assert outgrown(opened(checkpoint, user("a" * 300)), 0, 1000, TERMS) is not None


def test_everything_but_what_waits_for_the_client_gives_way_on_request() -> None:
    waiting = called("call_2")[:2]
    old = (user("a"), *called("call_1"), user("b"))
    assert everything((*old, *waiting), TERMS) == Division(old, (user("a"), user("b")), tuple(waiting))


def test_request_that_waits_for_approval_does_not_give_way() -> None:
    request = {"type": "mcp_approval_request", "id": "mcpr_1", "server_label": "s", "name": "n", "arguments": "{}"}
    answer = {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True}
    assert everything((user("a"), request), TERMS).after == (request,)
    assert everything((user("a"), request, answer), TERMS).after == ()


@pytest.mark.parametrize("items", [(), tuple(called("call_1")[:2])])
def test_nothing_to_compact_is_said(items: tuple[Json, ...]) -> None:
    with pytest.raises(ClientError, match="nothing to compact"):
        everything(items, TERMS)


def test_image_counts_by_itself_and_not_by_its_bytes() -> None:
    image = {"type": "input_image", "image_url": f"data:image/png;base64,{'A' * 100_000}"}
    words = {"type": "input_text", "text": "What is this?"}
    without, with_it = ({**user(""), "content": parts} for parts in ([words], [words, image]))
    assert item_tokens(with_it, 4) == item_tokens(without, 4) + MEDIA_TOKENS


@given(st.lists(st.sampled_from(["user", "assistant", "called"]), max_size=12), st.integers(200, 4000))
def test_no_cut_parts_a_pair_or_leaves_the_model_the_last_word(kinds: list[str], threshold: int) -> None:
    said = [user("first")]
    for number, kind in enumerate(kinds):
        words = "word " * (number * 7 % 50)
        said += (
            called(f"call_{number}", words)
            if kind == "called"
            else [{"user": user, "assistant": assistant}[kind](words)]
        )
    window = opened(*said, user("last"))
    division = outgrown(window, 0, threshold, TERMS)
    if division is None:
        return
    check_calls(division.old)
    check_calls(division.after)
    told = division.checkpoint("Summary.").told
    assert told[-1].get("role") == "user" or told[-1]["type"] == "function_call_output"
    assert window.items in (division.old, (*division.old, *division.after))
