"""Random characters that hide the length of a delta from whoever watches the encrypted stream.

Knows lengths only. Invariant: a delta and its padding have a multiple of `BLOCK` characters together, so an observer
learns the length of a delta to within `BLOCK` characters. Source: API reference, `stream_options.include_obfuscation`,
and OpenAI's own streams, where every event with a `delta` has such a padding, an empty one included.
"""

from __future__ import annotations

import secrets
import string
from typing import Final

from attache_core.json_codec import Json

BLOCK: Final = 16
"""How many characters a delta with its padding is rounded up to."""

_POOL_CHARACTERS: Final = 1024
"""How many random characters are made at once: one system call for about a hundred deltas."""

_ALPHABET: Final = (string.ascii_letters + string.digits).encode()
_LETTERS: Final = bytes(_ALPHABET[value % len(_ALPHABET)] for value in range(256))
"""A letter or digit for each byte; some are a little likelier than others, which hides lengths as well."""


class Obfuscation:
    """The padding of one stream's deltas."""

    def __init__(self) -> None:
        self._pool = ""
        self._at = 0

    def padding(self, delta: str) -> str:
        """The `obfuscation` of an event with this `delta`: 0 to 15 random letters and digits."""
        start = self._at
        end = self._at = start + (-len(delta) % BLOCK)
        if end > len(self._pool):
            self._pool = secrets.token_bytes(_POOL_CHARACTERS).translate(_LETTERS).decode()
            start, end = 0, end - start
            self._at = end
        return self._pool[start:end]


def wants_obfuscation(body: Json) -> bool:
    """Whether a create request asks for a stream with padding; the API's default is yes."""
    options = body.get("stream_options")
    asked = options.get("include_obfuscation") if isinstance(options, dict) else None
    return body.get("stream") is True and asked is not False
