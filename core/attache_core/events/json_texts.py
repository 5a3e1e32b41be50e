"""The arguments of calls as texts: whether one is a JSON object, and whether two say the same, as servers repeat them
in other white space, order and spelling.

Pure. Errs on the side of "no": a text that is not JSON, is nested too deeply or has a number beyond a float's range is
the same as no other text.
"""

from __future__ import annotations

import json
import math
from typing import Any

from attache_core import json_codec


def is_json_object(arguments: str) -> bool:
    """Whether these are the text of a JSON object, so that nothing but white space can follow."""
    try:
        return isinstance(json_codec.decode(arguments), dict)
    except ValueError:
        return False


def same_json(one: str, other: str) -> bool:
    """Whether every reader of both texts gets the same value.

    The order of an object's keys, white space, escapes and the spelling of a number (`1`, `1.0`, `1e0`) do not count.
    Integers count with all digits, fractions as far as a 64-bit float tells them apart. Of a key that occurs twice, all
    values count, in their order, because readers differ in which they take.
    """
    try:
        return _canonical(one) == _canonical(other)
    except (ValueError, RecursionError):
        return False


def _canonical(text: str) -> str:
    value = json.loads(text, parse_float=_number, parse_constant=_refuse, object_pairs_hook=_pairs)
    return json.dumps(value)


def _number(digits: str) -> int | float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError("out of range")
    return int(number) if number.is_integer() else number


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, list[tuple[str, Any]]]:
    """An object in a form in which order does not count and no pair is lost; the only form that objects have here."""
    return {"": sorted(pairs, key=lambda pair: pair[0])}


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is not JSON")
