"""This gateway's own canonical events, read back by the next filter up."""

from __future__ import annotations

from attache_core.events.dialects.base import Dialect
from attache_core.events.dialects.item_keys import ItemKeys
from attache_core.json_codec import Json


class CanonicalReader(Dialect):
    """Keeps items as they are, ids included. Item ids are keys, so they do not collide over the rounds of a turn."""

    def __init__(self) -> None:
        super().__init__()
        self._keys = ItemKeys(ids_are_keys=True)

    def _clean(self, item: Json) -> Json:
        return item
