"""A value that is shown to nobody.

Whatever makes text of it (`repr`, `str`, `format`, a log, a traceback's locals, a JSON encoder, a dump of the settings)
gets a placeholder or an error; only `reveal` gives the value. Unaware of what it is a secret for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Generic, NoReturn, TypeVar

from pydantic import GetCoreSchemaHandler, SerializationInfo
from pydantic_core import CoreSchema, core_schema

T = TypeVar("T")

HIDDEN = "[redacted]"
REVEALING = "reveal_secrets"
"""The key of a pydantic serialization context that is true where settings are handed to our own worker processes."""

_MIN_SECRET_LENGTH = 4
_NO_SECRETS = frozenset({"bearer", "basic"})
_SEPARATORS = re.compile(r"[\s,;=]+")


class Secret(Generic[T]):
    """Holds a value. Prints as `Secret([redacted])`; is neither pickled nor encoded as JSON."""

    __slots__ = ("_value",)

    def __init__(self, value: T) -> None:
        self._value = value

    def reveal(self) -> T:
        """The value. For the connection, and for nothing that is kept or printed."""
        return self._value

    def __repr__(self) -> str:
        return f"{type(self).__name__}({HIDDEN})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._value == self._value

    __hash__ = None  # type: ignore[assignment]  # a hash of a short secret tells the secret

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"a {type(self).__name__} is not pickled: it would be readable in whatever holds the bytes")

    def __copy__(self) -> Secret[T]:
        return self

    def __deepcopy__(self, _memo: object) -> Secret[T]:
        return self


class ApiKey(Secret[str]):
    """A key among the settings: a text where it is read, `[redacted]` where settings are dumped as JSON.

    With `context={REVEALING: True}` a dump holds the key, so that it can be read back.
    """

    __slots__ = ()

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: Any, _handler: GetCoreSchemaHandler) -> CoreSchema:  # noqa: ANN401
        return core_schema.no_info_plain_validator_function(
            _read,
            json_schema_input_schema=core_schema.str_schema(),
            serialization=core_schema.plain_serializer_function_ser_schema(
                _dumped, info_arg=True, return_schema=core_schema.str_schema(), when_used="json"
            ),
        )


def _read(value: object) -> ApiKey:
    """Errors of other validators would repeat the value."""
    if isinstance(value, ApiKey):
        return value
    if not isinstance(value, str) or not value:
        raise ValueError("a key is a text that is not empty.")
    if not (value.isascii() and value.isprintable()) or value != value.strip():
        raise ValueError("a key is printable ASCII without white space around it, as it goes into an HTTP header.")
    return ApiKey(value)


def _dumped(key: ApiKey, info: SerializationInfo) -> str:
    return key.reveal() if (info.context or {}).get(REVEALING) else HIDDEN


def redacted(text: str, secrets: Iterable[str]) -> str:
    """`text` without these secrets and without the words of them, as a server may have echoed them.

    Words of fewer than four characters, and the names of authentication schemes, are no secrets.
    """
    words = {word for secret in secrets for word in (secret, *_SEPARATORS.split(secret))}
    for word in sorted(words, key=len, reverse=True):
        if len(word) >= _MIN_SECRET_LENGTH and word.lower() not in _NO_SECRETS:
            text = text.replace(word, HIDDEN)
    return text
