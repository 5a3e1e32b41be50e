"""Where a conversation may be cut in two.

Never between a call and its output, and never within what a model said at once, so that reasoning stays beside what it
led to. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

from attache_core.json_codec import Json
from attache_core.tools.approval_history import REQUEST, RESPONSE, request_id
from attache_core.tools.function_items import pair_id
from attache_core.turn.pending_calls import OUTPUT_OF

_OUTPUTS = frozenset(OUTPUT_OF.values())


def cuts(items: Sequence[Json]) -> list[int]:
    """The places before which it may be cut, in order: 0, then others, and the end unless something is unanswered."""
    places: list[int] = []
    unanswered: set[str] = set()
    for place, item in enumerate(items):
        if not unanswered and not (place and is_models(items[place - 1]) and is_models(item)):
            places.append(place)
        _note(item, unanswered)
    return places if unanswered else [*places, len(items)]


def turn_cuts(items: Sequence[Json]) -> list[int]:
    """Of these, 0, the places where the user begins to speak, and those after the user's newest message.

    So what is left of a conversation begins as one does, and the turn that is being worked on can be cut as well.
    """
    newest = newest_of_user(items)
    return [place for place in cuts(items) if place == 0 or place > newest or items[place].get("role") == "user"]


def newest_of_user(items: Sequence[Json]) -> int:
    """The place of the user's newest message; -1 where there is none."""
    return max((place for place, item in enumerate(items) if item.get("role") == "user"), default=-1)


def is_models(item: Json) -> bool:
    """Whether a model said it, or a gateway in the course of its answer."""
    kind = str(item.get("type") or "message")
    if kind == "message":
        return item.get("role") == "assistant"
    return kind in ("reasoning", REQUEST) or kind.endswith("_call")


def _note(item: Json, unanswered: set[str]) -> None:
    kind, call_id = item.get("type"), pair_id(item)
    if kind == REQUEST:
        unanswered.add(f"approval {request_id(item)}")
    elif kind == RESPONSE:
        unanswered.discard(f"approval {request_id(item)}")
    elif call_id is not None and kind in OUTPUT_OF:
        unanswered.add(call_id)
    elif call_id is not None and kind in _OUTPUTS:
        unanswered.discard(call_id)
