"""A value that is shown to nobody.

Whatever makes text of it (`repr`, `str`, `format`, a log, a traceback's locals, a JSON encoder, a dump of the settings)
gets a placeholder or an error; only `reveal` gives the value. Unaware of what it is a secret for.
"""

from __future__ import annotations

from typing import Any, Generic, NoReturn, Self, TypeVar

from pydantic import GetCoreSchemaHandler, SerializationInfo
from pydantic_core import CoreSchema, core_schema

T = TypeVar("T")

HIDDEN = "[redacted]"
REVEALING = "reveal_secrets"
"""The key of a pydantic serialization context that is true where settings are handed to our own worker processes."""


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


class SecretSetting(Secret[str]):
    """A secret among the settings: a text where it is read, a placeholder where settings are dumped as JSON.

    With `context={REVEALING: True}` a dump holds the text, so that it can be read back. A subclass says what is right.
    """

    __slots__ = ()

    @classmethod
    def check(cls, value: object) -> str:
        """The text to keep. Raises ValueError in words that do not repeat it, as other validators' would."""
        raise NotImplementedError

    def shown(self) -> str:
        """What a dump shows of it."""
        return HIDDEN

    @classmethod
    def read(cls, value: object) -> Self:
        """Check a value; one that was read before is right."""
        return value if isinstance(value, cls) else cls(cls.check(value))

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: Any, _handler: GetCoreSchemaHandler) -> CoreSchema:  # noqa: ANN401
        return core_schema.no_info_plain_validator_function(
            cls.read,
            json_schema_input_schema=core_schema.str_schema(),
            serialization=core_schema.plain_serializer_function_ser_schema(
                _dumped, info_arg=True, return_schema=core_schema.str_schema(), when_used="json"
            ),
        )


def _dumped(secret: SecretSetting, info: SerializationInfo) -> str:
    return secret.reveal() if (info.context or {}).get(REVEALING) else secret.shown()
