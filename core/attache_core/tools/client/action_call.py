"""Calls that come to the client as one object, an action or an operation, instead of a text that grows.

The item is shown once its arguments are whole: an action of which a part is known is not one. A call that was cut off
is therefore not shown at all. The object always has the shape of its type, whatever the model wrote.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable

from attache_core.events.model_events import ItemAdded, ItemDone, ItemEvent, ModelEvent
from attache_core.json_codec import Json
from attache_core.tools.arguments import decode_arguments


class ActionCall(ABC):
    """The way of one call from arguments to the public item; a `ClientCall`."""

    @abstractmethod
    def item(self, call_id: object, arguments: object) -> Json:
        """The finished item. `arguments` is the JSON value that the model wrote; None where that is none."""

    def begun(self, item: Json) -> Json:
        """The item as it is announced."""
        return item

    def events(self, key: str, item: Json) -> Iterable[ItemEvent]:
        """The events between the two."""
        del key, item
        return ()

    def feed(self, said: ModelEvent) -> list[ModelEvent]:
        """See `ClientCall`."""
        if not isinstance(said, ItemDone) or said.item.get("status") == "incomplete":
            return []
        done = self.item(said.item.get("call_id"), _json(said.item.get("arguments") or "{}"))
        begun = {**self.begun(done), "status": "in_progress"}
        return [ItemAdded(said.key, begun), *self.events(said.key, done), ItemDone(said.key, done)]


NO_CALLER: Json = {"caller": None, "created_by": None}
"""A call was made by the model itself, not by a program that it wrote."""


def texts(value: object) -> list[str]:
    """An array of texts; one text alone is an array of it."""
    if isinstance(value, str):
        return [value]
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def positive(value: object) -> int | None:
    """A number that is a limit, or None."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value < 1:
        return None
    return int(value)


def text(value: object) -> str | None:
    """A text, or None."""
    return value if isinstance(value, str) else None


def _json(text: str) -> object:
    try:
        return decode_arguments(text)
    except ValueError:
        return None
