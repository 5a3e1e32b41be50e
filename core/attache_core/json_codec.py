"""JSON in and out: orjson, and the standard library for the few texts that orjson refuses.

A lone surrogate (`"\\ud83d"`) is legal in JSON text and models do emit it, but has no UTF-8 form, so orjson refuses it
in both directions. It survives here, escaped on the wire. Infinity and NaN are not JSON and are refused.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from typing import Any

import orjson

Json = dict[str, Any]
"""A JSON object."""

_DIGITS_ALIKE = bytes.maketrans(b"123456789", b"000000000")
_LONG_NUMBER = b"0" * 19
_DIGITS = re.compile(rb"\d+")
_INSIDE = re.compile(rb"[\w.+]")
"""What a row of digits does not follow where it begins a number."""


def decode(data: bytes | str) -> Any:  # noqa: ANN401 - this is where JSON is decoded
    """Parse one JSON text. Raises ValueError when it is not one."""
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return _decode_tolerantly(data if isinstance(data, str) else data.decode())


def decode_exactly(data: bytes | str) -> Any:  # noqa: ANN401 - this is where JSON is decoded
    """The same, but integers of more than 64 bits keep their digits; for texts that come once, not for each event."""
    text = data if isinstance(data, bytes) else data.encode(errors="surrogatepass")
    if _has_long_integer(text):
        return _decode_tolerantly(data if isinstance(data, str) else data.decode())
    return decode(data)


def decode_all_exactly(texts: Sequence[bytes]) -> list[Any]:
    """`decode_exactly` for each of these texts, at once: many small texts cost twice as much one by one."""
    found: list[Any] = decode_exactly(b"[" + b",".join(texts) + b"]")
    return found


def encode(value: object) -> bytes:
    """Compact UTF-8 JSON in the order of the keys."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return json.dumps(value, ensure_ascii=True, separators=(",", ":"), allow_nan=False).encode()


def encode_each(values: Sequence[str | int]) -> list[bytes]:
    """Each of these as `encode` writes it, at least one; in one go, which for small ones is several times faster."""
    # Indented, each stands on a line of its own, and none has a line end in it.
    try:
        lines = orjson.dumps(list(values), option=orjson.OPT_INDENT_2)
    except TypeError:
        return list(map(encode, values))
    return lines[len("[\n  ") : -len("\n]")].split(b",\n  ")


def is_deeper(value: object, levels: int) -> bool:
    """Whether a JSON value has more arrays and objects in one another than that. Looks at all of it."""
    layer = [value] if isinstance(value, (dict, list)) else []
    for _ in range(levels):
        if not layer:
            return False
        children = (node.values() if isinstance(node, dict) else node for node in layer)
        layer = [child for each in children for child in each if isinstance(child, (dict, list))]
    return bool(layer)


def _has_long_integer(text: bytes) -> bool:
    """Whether so many digits begin a number that orjson might make a floating-point one of an integer.

    Any such row of digits is looked for first, which most texts have only in ids, if at all.
    """
    alike = text.translate(_DIGITS_ALIKE)
    at = alike.find(_LONG_NUMBER)
    while at >= 0:
        if _INSIDE.fullmatch(text[max(at - 1, 0) : at]) is None:
            return True
        row = _DIGITS.match(text, at)
        assert row is not None
        at = alike.find(_LONG_NUMBER, row.end())
    return False


def _decode_tolerantly(text: str) -> Any:  # noqa: ANN401 - this is where JSON is decoded
    try:
        return json.loads(text, parse_constant=_refuse_constant, parse_float=_finite)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _finite(digits: str) -> float:
    """A number too large for a float would become infinity, which cannot be written back."""
    number = float(digits)
    if math.isinf(number):
        raise ValueError(f"{digits} is out of range")
    return number
