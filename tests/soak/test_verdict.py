"""The verdict finds what is wrong: each test spoils one thing of a soak that went well."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from attache_core.json_codec import Json
from soak.told import Told, answer_to, digest
from soak.verdict import Found, faults


def message(item_id: str, text: str) -> Json:
    return {"id": item_id, "content": [{"text": text}]}


def items_of(*words: str) -> list[Json]:
    pairs = ((message(f"in {each}", each), message(f"out {each}", answer_to(each))) for each in words)
    return [item for pair in pairs for item in pair]


def told(words: str, at: float) -> Told:
    response: Json = {"id": f"resp {words}", "output": [{"id": f"out {words}"}]}
    return Told(words, "conv", at, at + 1, "completed", "completed", response)


def found(*words: str, said: Sequence[Told]) -> Found:
    texts = [text for each in words for text in (each, answer_to(each))]
    heard = {each: digest(texts[: 2 * place]) for place, each in enumerate(words)}
    responses = {turn.response["id"]: turn.response for turn in said if turn.response is not None}
    return Found({"conv": items_of(*words)}, responses, heard)


GOOD = (told("a", 0.0), told("b", 2.0), told("c", 2.5))


def test_store_that_holds_what_was_told_has_no_faults() -> None:
    left = Told("d", "conv", 5.0, 6.0, "unknown", "left")
    for order in (("a", "b", "c"), ("a", "c", "b")):  # two that overlap may stand either way
        assert faults(GOOD, found(*order, said=GOOD)) == []
        assert faults([*GOOD, left], found(*order, said=GOOD)) == []
        assert faults([*GOOD, left], found(*order, "d", said=GOOD)) == []


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        (("a", "b"), "c: told to be complete, and not in conv"),
        (("a", "b", "c", "c"), "c: 2 times in conv"),
        (("b", "a", "c"), "a: ended before b was sent, and stands after it in conv"),
        (("a", "b", "c", "x"), "x: in conv, and nobody said it there"),
    ],
)
def test_turn_that_is_missing_twice_there_out_of_order_or_invented_is_found(words: Sequence[str], fault: str) -> None:
    assert fault in faults(GOOD, found(*words, said=GOOD))


def test_turn_that_was_refused_and_is_there_is_found() -> None:
    refused = Told("d", "conv", 5.0, 6.0, "refused", "400 conversation_locked")
    assert faults([*GOOD, refused], found("a", "b", "c", "d", said=GOOD)) == [
        "d: refused (400 conversation_locked), and in conv"
    ]


def test_response_that_is_missing_or_another_is_found() -> None:
    good = found("a", "b", "c", said=GOOD)
    for there in (None, {"id": "resp b"}):
        spoiled = replace(good, responses={**good.responses, "resp b": there})
        assert faults(GOOD, spoiled) == ["b: the response resp b is not stored as it was told"]


def test_half_a_turn_and_turns_that_are_mixed_up_are_found() -> None:
    good = found("a", "b", "c", said=GOOD)
    items = list(good.conversations["conv"])
    half = replace(good, conversations={"conv": items[:-1]})
    mixed = replace(good, conversations={"conv": [items[0], items[2], items[1], *items[3:]]})

    assert "conv: half a turn is in it" in faults(GOOD, half)
    assert "conv: 'a' is followed by 'b'" in faults(GOOD, mixed)


def test_turn_that_had_not_heard_what_stands_before_it_is_found() -> None:
    good = found("a", "b", "c", said=GOOD)
    spoiled = replace(good, heard={**good.heard, "c": digest(["a"])})
    assert faults(GOOD, spoiled) == ["c: the model had not heard what stands before it in conv"]


def test_items_that_were_told_under_other_ids_are_found() -> None:
    good = found("a", "b", "c", said=GOOD)
    items = [*good.conversations["conv"][:-1], message("another", answer_to("c"))]
    assert faults(GOOD, replace(good, conversations={"conv": items})) == [
        "c: its items have other ids in the conversation"
    ]
