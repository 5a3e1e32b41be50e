"""Keys that the gateway sends to others, and taking them out of what others answer."""

from __future__ import annotations

import re
from collections.abc import Iterable

from attache_core.secret import HIDDEN, SecretSetting

_MIN_SECRET_LENGTH = 4
_NO_SECRETS = frozenset({"bearer", "basic"})
_SEPARATORS = re.compile(r"[\s,;=]+")


class ApiKey(SecretSetting):
    """A key for a provider's HTTP header."""

    __slots__ = ()

    @classmethod
    def check(cls, value: object) -> str:
        """See `SecretSetting.check`."""
        if not isinstance(value, str) or not value:
            raise ValueError("a key is a text that is not empty.")
        if not (value.isascii() and value.isprintable()) or value != value.strip():
            raise ValueError("a key is printable ASCII without white space around it, as it goes into an HTTP header.")
        return value


def redacted(text: str, secrets: Iterable[str]) -> str:
    """`text` without these secrets and without the words of them, as a server may have echoed them.

    Words of fewer than four characters, and the names of authentication schemes, are no secrets.
    """
    words = {word for secret in secrets for word in (secret, *_SEPARATORS.split(secret))}
    for word in sorted(words, key=len, reverse=True):
        if len(word) >= _MIN_SECRET_LENGTH and word.lower() not in _NO_SECRETS:
            text = text.replace(word, HIDDEN)
    return text
