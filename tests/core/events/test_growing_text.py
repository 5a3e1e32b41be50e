from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from attache_core.events.growing_text import MAX_PIECES, GrowingText


@settings(max_examples=100, deadline=None)
@given(st.lists(st.text(max_size=3), max_size=4 * MAX_PIECES), st.integers(1, 5))
def test_text_is_its_pieces_joined(pieces: list[str], times: int) -> None:
    text = GrowingText()
    for piece in pieces * times:
        text.add(piece)
    assert (text.value, bool(text)) == ("".join(pieces) * times, bool(pieces))


def test_text_that_was_replaced_goes_on_from_there() -> None:
    text = GrowingText()
    for _ in range(3 * MAX_PIECES):
        text.add("old")
    text.replace("new")
    text.add("er")
    assert text.value == "newer"
    text.replace("")
    assert (text.value, bool(text)) == ("", False)
