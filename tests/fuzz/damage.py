"""Good JSON, damaged: strategies that change a few places of a valid document into what nobody expects there."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from hypothesis import strategies as st

from attache_core.json_codec import Json


def _deep(levels: int) -> Any:
    value: Any = 0
    for _ in range(levels):
        value = [value]
    return value


NOISE: Sequence[Any] = (
    None,
    True,
    False,
    0,
    -1,
    7,
    2**63,
    2**70,
    -0.5,
    1e308,
    "",
    "x",
    "NUL \x00 inside",
    "\ud83d",
    "\udfff\ud800",
    "é\u2028\u2029\x85\r\n",
    "long " * 2000,
    "in_progress",
    "function",
    "__proto__",
    [],
    [[]],
    [None],
    ["x", 1, {}],
    {},
    {"": ""},
    {"type": None},
    {"type": "message"},
    {"type": "function_call"},
    {"type": "no_such_type", "id": "x"},
    {"\x00": {"\ud83d": 1}},
    _deep(60),
    _deep(250),
    list(range(300)),
)
"""What a place of a document becomes."""

Place = tuple[Any, Any]
"""A container and the key or index in it."""


def _places(value: Any) -> Iterator[Place]:
    for key, child in value.items() if isinstance(value, dict) else enumerate(value):
        yield value, key
        if isinstance(child, (dict, list)):
            yield from _places(child)


def _replace(place: Place, noise: Any) -> None:
    container, key = place
    container[key] = copy.deepcopy(noise)


def _remove(place: Place, noise: Any) -> None:
    container, key = place
    del container[key]


def _wrap(place: Place, noise: Any) -> None:
    container, key = place
    container[key] = [container[key]]


def _repeat(place: Place, noise: Any) -> None:
    container, key = place
    if isinstance(container, list):
        container.insert(key, copy.deepcopy(container[key]))
    else:
        container[f"{key}_"] = copy.deepcopy(container[key])


def _add(place: Place, noise: Any) -> None:
    container, key = place
    if isinstance(container, list):
        container.insert(key, copy.deepcopy(noise))
    else:
        container["unheard_of"] = copy.deepcopy(noise)


OPERATIONS: Sequence[Callable[[Place, Any], None]] = (_replace, _replace, _remove, _wrap, _repeat, _add)


@st.composite
def damaged(draw: st.DrawFn, documents: Sequence[Json], most: int = 3) -> Json:
    """One of the documents with up to `most` of its places changed; itself unharmed."""
    document: Json = copy.deepcopy(draw(st.sampled_from(documents)))
    count: int = draw(st.integers(0, most))
    for _ in range(count):
        places = list(_places(document))
        if places:
            operation: Callable[[Place, Any], None] = draw(st.sampled_from(OPERATIONS))
            operation(draw(st.sampled_from(places)), draw(st.sampled_from(NOISE)))
    return document
