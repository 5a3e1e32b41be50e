"""What is kept of an output."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from attache_core.tools.shell.printed import Printed


@given(chunks=st.lists(st.binary(max_size=40), max_size=20), max_bytes=st.integers(1, 64))
def test_beginning_and_end_are_kept_however_it_is_cut(chunks: list[bytes], max_bytes: int) -> None:
    printed = Printed(max_bytes)
    for chunk in chunks:
        printed.feed(chunk)

    everything = b"".join(chunks)
    left_out = len(everything) - max_bytes
    if left_out <= 0:
        assert printed.text == _text(everything)
    else:
        head, tail = everything[: max_bytes - max_bytes // 2], everything[len(everything) - max_bytes // 2 :]
        assert printed.text == f"{_text(head)}\n[{left_out} bytes left out]\n{_text(tail)}"


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace").replace("\0", "\ufffd")
