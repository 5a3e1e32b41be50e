from __future__ import annotations

from attache_core.events.model_events import Delta, Finished, ItemAdded, ItemDone, ModelEvent
from attache_core.events.text_done import SaidEvent
from attache_core.json_codec import Json
from core.events.pipeline import accumulated, new_accumulator

CALL: Json = {"type": "function_call", "status": "completed", "arguments": "{}", "call_id": "c", "name": "look"}
REASONING: Json = {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]}


def message(text: str) -> Json:
    part = {"type": "output_text", "annotations": [], "logprobs": [], "text": text}
    return {"type": "message", "status": "completed", "content": [part], "role": "assistant"}


def shown(*said: SaidEvent) -> list[tuple[str, Json]]:
    accumulator = new_accumulator()
    strict = accumulated([*said, Finished("completed")], accumulator)
    assert [event.key for event in strict if isinstance(event, ItemAdded)] == [key for key, _ in accumulator.items]
    return accumulator.items


def test_blank_message_before_a_call_is_not_shown() -> None:
    assert shown(Delta("m", 0, "text", "\n\n"), ItemDone("f", CALL)) == [("f", CALL)]


def test_blank_message_after_a_call_is_not_shown() -> None:
    assert shown(ItemDone("f", CALL), ItemDone("m", message(" "))) == [("f", CALL)]


def test_empty_message_between_calls_is_not_shown() -> None:
    assert shown(ItemDone("f", CALL), ItemAdded("m", {"type": "message"}), ItemDone("x", {"type": "x"})) == [
        ("f", CALL),
        ("x", {"type": "x"}),
    ]


def test_blank_message_that_is_the_answer_is_shown() -> None:
    assert shown(ItemDone("r", REASONING), ItemDone("m", message("\n"))) == [("r", REASONING), ("m", message("\n"))]


def test_leading_white_space_is_shown_with_the_first_word() -> None:
    accumulator = new_accumulator()
    blank, word = Delta("m", 0, "text", "\n\n"), Delta("m", 0, "text", "Hello")
    assert accumulator.feed(blank) == []
    events: list[ModelEvent] = accumulator.feed(word)
    assert events[-2:] == [blank, word]
    assert shown(blank, word, ItemDone("f", CALL)) == [("m", message("\n\nHello")), ("f", CALL)]


def test_message_whose_end_says_more_than_its_deltas_is_shown() -> None:
    said = Delta("m", 0, "text", " "), ItemDone("m", message("different")), ItemDone("f", CALL)
    assert shown(*said) == [("m", message("different")), ("f", CALL)]


def test_call_that_is_still_open_goes_on_while_a_message_is_held_back() -> None:
    accumulator = new_accumulator()
    for event in (ItemAdded("f", {**CALL, "arguments": ""}), Delta("m", 0, "text", " ")):
        accumulator.feed(event)
    delta = Delta("f", None, "arguments", "{}")
    assert accumulator.feed(delta) == [delta]


def test_white_space_in_many_deltas_is_shown_as_one() -> None:
    accumulator = new_accumulator()
    for _ in range(200):
        assert accumulator.feed(Delta("m", 0, "text", "\n ")) == []
    word = Delta("m", 0, "text", "Hello")
    assert accumulator.feed(word)[-2:] == [Delta("m", 0, "text", "\n " * 200), word]


def test_white_space_with_log_probabilities_is_shown_with_them() -> None:
    accumulator = new_accumulator()
    known = Delta("m", 0, "text", " ", {"logprobs": [{"token": " "}]})
    said = [Delta("m", 0, "text", "\n"), known, Delta("m", 0, "text", "\n"), Delta("m", 0, "text", "x")]
    shown = [event for delta in said for event in accumulator.feed(delta)]
    assert shown[-4:] == said
