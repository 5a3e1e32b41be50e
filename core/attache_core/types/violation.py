"""What is wrong with a request, in the API's words: the one place where pydantic's errors become a `ClientError`.

Knows how the API phrases its 400s (message, `param` path, `code`); is unaware of which fields exist. Invariants: no
word of pydantic reaches a client; what a client sent is quoted only in part, and only where the sentence needs it.
Source: the error objects that OpenAI's API answers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from attache_core.errors import ClientError

MAX_QUOTED_CHARS = 100
"""How much of a client's value an error message repeats."""

MAX_PARAM_CHARS = 256
"""How long a `param` path may be; object keys in it are the client's."""

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Violation:
    """What one of our own checks found: `{param}` in the sentence stands for the path, `at` leads on from the field."""

    code: str
    sentence: str
    at: Path = ()


def wrong_type(expected: str, value: object, at: Path = ()) -> PydanticCustomError:
    """`Invalid type for …`; `expected` is a noun phrase such as `an array of tools`."""
    return refused("invalid_type", _wrong_type(expected, value), at)


def wrong_value(value: object, supported: Sequence[str], at: Path = ()) -> PydanticCustomError:
    """`Invalid value: …` with the values that would be right, in the order given."""
    listed = enumerated(supported, "and")
    return refused("invalid_value", f"Invalid value: {quoted(value)}. Supported values are: {listed}.", at)


def missing(at: str) -> PydanticCustomError:
    """`Missing required parameter: …` for a field of the object."""
    return refused("missing_required_parameter", _MISSING, (at,))


def refused(code: str, sentence: str, at: Path = ()) -> PydanticCustomError:
    """A sentence of our own; see `Violation`."""
    # One object, because pydantic renders texts in a context as UTF-8, and a client's may have none.
    return PydanticCustomError("violation", "violation", {"violation": Violation(code, sentence, at)})


def client_error(error: ValidationError) -> ClientError:
    """The first thing that is wrong, as a 400; checks run in the order in which fields are declared."""
    first = error.errors(include_url=False)[0]
    found = _violation(first)
    param = param_path((*first["loc"], *found.at))
    return ClientError(found.sentence.replace("{param}", param), code=found.code, param=param or None)


def param_path(steps: Path) -> str:
    """`("input", 0, "content")` is `input[0].content`."""
    path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
    return _shortened(path.removeprefix("."), MAX_PARAM_CHARS)


def quoted(value: object) -> str:
    """A client's text as a message repeats it, single-quoted and cut; nothing of what is not text."""
    return f"'{_shortened(value if isinstance(value, str) else '', MAX_QUOTED_CHARS)}'"


def enumerated(values: Sequence[str], conjunction: str) -> str:
    """`'a'`, `'a' and 'b'`, `'a', 'b', and 'c'`."""
    names = [f"'{value}'" for value in values]
    if len(names) <= 2:
        return f" {conjunction} ".join(names)
    return f"{', '.join(names[:-1])}, {conjunction} {names[-1]}"


_EXPECTED = {
    "string_type": "a string",
    "bool_type": "a boolean",
    "int_type": "an integer",
    "int_from_float": "an integer",
    "float_type": "a decimal",
    "list_type": "an array",
    "dict_type": "an object",
    "model_type": "an object",
}


_MISSING = "Missing required parameter: '{param}'."


def _violation(first: ErrorDetails) -> Violation:
    """What pydantic found, in our terms."""
    kind, value, context = first["type"], first["input"], first.get("ctx", {})
    if kind == "violation":
        found: Violation = context["violation"]
        return found
    if kind in _EXPECTED:
        return Violation("invalid_type", _wrong_type(_EXPECTED[kind], value))
    if kind == "missing":
        return Violation("missing_required_parameter", _MISSING)
    code, rest = _BOUNDS[kind](value, context)
    return Violation(code, f"Invalid '{{param}}': {rest}")


def _wrong_type(expected: str, value: object) -> str:
    return f"Invalid type for '{{param}}': expected {expected}, but got {_kind(value)} instead."


def _below(value: object, context: Mapping[str, Any]) -> tuple[str, str]:
    number, bound = _number(context["ge"]), context["ge"]
    expected = f"Expected a value >= {bound:g}, but got {_cut(value)} instead."
    return f"{number}_below_min_value", f"{number} below minimum value. {expected}"


def _above(value: object, context: Mapping[str, Any]) -> tuple[str, str]:
    number, bound = _number(context["le"]), context["le"]
    expected = f"Expected a value <= {bound:g}, but got {_cut(value)} instead."
    return f"{number}_above_max_value", f"{number} above maximum value. {expected}"


def _long_text(value: str, context: Mapping[str, Any]) -> tuple[str, str]:
    limit = context["max_length"]
    expected = f"Expected a string with maximum length {limit}, but got a string with length {len(value)} instead."
    return "string_above_max_length", f"string too long. {expected}"


def _empty_text(value: object, context: Mapping[str, Any]) -> tuple[str, str]:
    expected = "Expected a string with minimum length 1, but got an empty string instead."
    return "empty_string", f"empty string. {expected}"


def _pattern(value: object, context: Mapping[str, Any]) -> tuple[str, str]:
    expected = f"Expected a string that matches the pattern '{context['pattern']}'."
    return "invalid_value", f"string does not match pattern. {expected}"


def _not_unicode(value: object, context: Mapping[str, Any]) -> tuple[str, str]:
    return "invalid_value", "string is not well-formed Unicode. Expected a string without unpaired surrogates."


_BOUNDS: dict[str, Callable[[Any, Mapping[str, Any]], tuple[str, str]]] = {
    "greater_than_equal": _below,
    "less_than_equal": _above,
    "string_too_long": _long_text,
    "string_too_short": _empty_text,
    "string_pattern_mismatch": _pattern,
    "string_unicode": _not_unicode,
}


def _number(bound: float) -> str:
    return "integer" if isinstance(bound, int) else "decimal"


def _cut(value: object) -> str:
    return _shortened(str(value), MAX_QUOTED_CHARS)


def _shortened(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 3]}..."


def _kind(value: object) -> str:
    """The JSON type of a value, as a noun phrase."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int():
            return "an integer"
        case float():
            return "a decimal"
        case str():
            return "a string"
        case list():
            return "an array"
        case _:
            return "an object"
