"""The query of a URL as values that shapes can check: texts, numbers, booleans, and `include` as a list.

Is unaware of which parameters exist. Of a parameter that is given several times, the last counts.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any
from urllib.parse import parse_qs

_ELEMENT = re.compile(r"\[\d*\]$")
_BOOLEANS = {"true": True, "false": False}


def query_values(query: str, texts: Collection[str] = ()) -> dict[str, Any]:
    """What follows the question mark; arrays are `include=a&include=b`, `include[]=a` or `include[0]=a`.

    Args:
        query: percent-encoded, without the question mark.
        texts: parameters that are texts, whatever they look like.
    """
    given: dict[str, list[str]] = {}
    for name, values in parse_qs(query, keep_blank_values=True).items():
        given.setdefault(_ELEMENT.sub("", name), []).extend(values)
    return {name: _value(name, values, texts) for name, values in given.items()}


def _value(name: str, values: list[str], texts: Collection[str]) -> object:
    """A boolean or a number where the text is one; else the text, which is then of the wrong type."""
    last = values[-1]
    if name == "include":
        return values
    if name in texts:
        return last
    return int(last) if re.fullmatch(r"-?\d{1,18}", last) else _BOOLEANS.get(last, last)
