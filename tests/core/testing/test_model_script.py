"""The constructors of scripts: what they keep, and what they refuse."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attache_core.testing.model_script import (
    FunctionCall,
    Message,
    Recorded,
    Reply,
    Said,
    call,
    garbage,
    incomplete,
    replay,
    stream_error,
    text,
    with_usage,
)


def test_text_without_deltas_is_one_delta_for_each_word() -> None:
    assert text("It is  sunny.\n") == Reply(Said((Message(("It", " is", "  sunny.", "\n")),)))


def test_text_with_a_number_of_deltas_has_at_most_that_many() -> None:
    assert text("abcdefgh", deltas=3) == Reply(Said((Message(("abc", "def", "gh")),)))


def test_text_with_deltas_that_are_another_text_raises() -> None:
    with pytest.raises(ValueError, match="join"):
        text("abc", deltas=["ab", "d"])


def test_call_with_text_keeps_it_as_it_is() -> None:
    assert call("f", '{"a": ', call_id="c1") == FunctionCall("f", '{"a": ', "c1")


def test_modifiers_of_a_said_reply_add_up() -> None:
    reply = stream_error("Late.", reply=with_usage(3, 4, incomplete("content_filter", text("Hi"))))
    said = reply.content
    assert isinstance(said, Said)
    assert (said.items, said.incomplete_reason, said.usage) == ((Message(("Hi",)),), "content_filter", (3, 4))
    assert said.failure is not None


def test_incomplete_garbage_raises() -> None:
    with pytest.raises(TypeError, match="only what the model says"):
        incomplete(reply=garbage())


def test_replay_of_lines_is_their_events() -> None:
    lines = ["event: a\n", 'data: {"type":"a"}\n', "\n", "data: [DONE]\n", "\n"]
    assert replay(lines) == Reply(Recorded(200, (b'event: a\ndata: {"type":"a"}\n\n', b"data: [DONE]\n\n"), None))


@settings(max_examples=50)
@given(st.text())
def test_any_text_joins_from_its_deltas(said: str) -> None:
    content = text(said).content
    assert isinstance(content, Said)
    assert [item.text for item in content.items if isinstance(item, Message)] == [said]
