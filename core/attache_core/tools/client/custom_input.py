"""The free text of a custom tool, out of the arguments of the function that stands for it.

To the model a custom tool is a function with a single text parameter, and its input is read back from the arguments
while they come. Arguments of another form are the input as they are: a model may have written what the tool wants
without the JSON around it.
Source: RFC 8259, section 7.
"""

from __future__ import annotations

import json
import re
from typing import Final

from attache_core.json_codec import Json

CUSTOM_INPUT: Final = "input"
"""The name of the parameter."""

MAX_HEAD_CHARS = 64
"""How much may come before the text begins; it is `{"input":"` and white space."""

_HEAD: Final = re.compile(rf'\s*\{{\s*"{CUSTOM_INPUT}"\s*:\s*"')
_HEAD_SO_FAR: Final = re.compile(r'\s*(\{\s*("i?n?p?u?t?("\s*(:\s*)?)?)?)?')
_FIRST_OF_TWO: Final = r"\\u[dD][89abAB][0-9a-fA-F]{2}"
_SECOND_OF_TWO: Final = r"\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_PIECE: Final = re.compile(
    rf'(?:[^"\\]|\\["\\/bfnrt]|\\u(?![dD][89abAB])[0-9a-fA-F]{{4}}|{_FIRST_OF_TWO}{_SECOND_OF_TWO})*'
)
"""Text that is complete: no escape, and no pair of escapes, is cut."""

_UNFINISHED: Final = re.compile(rf"(?:{_FIRST_OF_TWO})?(?:\\(?:u[0-9a-fA-F]{{0,3}})?)?")
_BARE: Final = re.compile(rf"{_FIRST_OF_TWO}|.", re.DOTALL)
"""What begins no escape is a backslash that the model forgot to escape, or half of a pair without the other."""


def input_parameters() -> Json:
    """The JSON schema of the function."""
    return {"type": "object", "properties": {CUSTOM_INPUT: {"type": "string"}}, "required": [CUSTOM_INPUT]}


class CustomInput:
    """The input of one call. Feed it the arguments, then `close` it; what comes out joined is the input."""

    def __init__(self) -> None:
        self._held = ""
        self._read = self._read_head

    def feed(self, arguments: str) -> str:
        """The text that these characters complete."""
        self._held += arguments
        return self._read()

    def close(self) -> str:
        """What was held back: the first half of something, as it is."""
        held, self._held = self._held, ""
        if self._read == self._skip:
            return ""
        return _decoded(held) if self._read == self._read_text else held

    def _read_head(self) -> str:
        head = _HEAD.match(self._held[:MAX_HEAD_CHARS])
        if head is not None:
            self._held = self._held[head.end() :]
            self._read = self._read_text
        elif _HEAD_SO_FAR.fullmatch(self._held) and len(self._held) <= MAX_HEAD_CHARS:
            return ""
        else:
            self._read = self._read_raw
        return self._read()

    def _read_text(self) -> str:
        held, at = self._held, 0
        text: list[str] = []

        def take(kind: re.Pattern[str]) -> None:
            nonlocal at
            found = kind.match(held, at)
            assert found is not None
            text.append(_decoded(found.group()))
            at = found.end()

        take(_PIECE)
        while not held.startswith('"', at) and not _UNFINISHED.fullmatch(held, at):
            take(_BARE)
            take(_PIECE)
        self._held = held[at:]
        if self._held.startswith('"'):
            self._read = self._skip
        return "".join(text)

    def _read_raw(self) -> str:
        held, self._held = self._held, ""
        return held

    def _skip(self) -> str:
        self._held = ""
        return ""


def _decoded(piece: str) -> str:
    try:
        return str(json.loads(f'"{piece}"', strict=False))
    except ValueError:
        return piece
