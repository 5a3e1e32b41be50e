from __future__ import annotations

from attache_core.events.dialects.item_keys import ItemKeys


def test_id_seen_before_is_trusted_over_the_index() -> None:
    keys = ItemKeys()
    first, second = keys.begun(0, ["a"], "message"), keys.begun(1, ["b"], "message")
    assert (keys.of(0, "b"), keys.of(1, "a")) == (second, first)


def test_unknown_id_is_of_the_index() -> None:
    keys = ItemKeys()
    first = keys.begun(0, ["a"], "function_call")
    assert keys.of(0, "b") == first
    assert keys.of(None, "b") == first, "and from then on the id is known"


def test_unknown_id_with_the_index_of_an_ended_item_is_a_new_item() -> None:
    keys = ItemKeys()
    first = keys.ended(0, ["a"], "reasoning")
    assert keys.of(0, "b") != first
    assert keys.of(0, None) != first


def test_event_without_id_and_index_is_of_the_item_begun_last() -> None:
    keys = ItemKeys()
    keys.begun(None, ["a"], "message")
    last = keys.begun(None, ["b"], "message")
    assert keys.of(None, None) == last
    assert keys.ended(None, [], "message") == last


def test_unknown_id_without_index_is_of_an_item_without_a_name() -> None:
    keys = ItemKeys()
    nameless = keys.begun(None, [], "function_call")
    assert keys.of(None, "fc_1") == nameless
    named = keys.begun(None, ["a"], "function_call")
    assert keys.of(None, "fc_2") != named


def test_announcement_repeated_is_the_same_item_and_a_new_index_is_not() -> None:
    keys = ItemKeys()
    first = keys.begun(0, ["a"], "message")
    assert keys.begun(0, ["a"], "message") == first
    assert keys.begun(1, ["a"], "message") != first


def test_end_repeated_is_the_same_item() -> None:
    keys = ItemKeys()
    assert keys.ended(0, ["a"], "message") == keys.ended(0, ["a"], "message")


def test_end_of_another_type_is_another_item() -> None:
    keys = ItemKeys()
    assert keys.begun(0, ["a"], "reasoning") != keys.ended(0, ["a"], "message")


def test_items_of_a_complete_answer_are_told_apart_by_their_place() -> None:
    keys = ItemKeys()
    assert keys.empty
    assert keys.whole(0, ["a"], "function_call") != keys.whole(1, ["a"], "function_call")
    assert not keys.empty
