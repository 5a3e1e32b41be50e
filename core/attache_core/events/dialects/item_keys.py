"""Which item an upstream event is about.

Servers name an item by its id, by its index in the output, by both, or (llama.cpp's calls) by its `call_id`; they
announce it under one id and go on under another, reuse an index, or say nothing at all. An id that was seen before
is trusted first, then the index, then that it is the item begun last.

Is unaware of parts and of text. A key is made for each item, so nothing that a server says decides whether two items
are one but the rules here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from attache_core.events.items import TEXT_ITEMS


@dataclass(slots=True)
class _Known:
    key: str
    type: str | None
    index: int | None
    named: bool
    ended: bool = False


class ItemKeys:
    """The items of one answer, by what the server calls them.

    `ids` are all names that an event gives an item, the best first; `index` is its `output_index`, None when missing.
    """

    def __init__(self, *, ids_are_keys: bool = False) -> None:
        self._ids_are_keys = ids_are_keys
        self._by_id: dict[str, _Known] = {}
        self._by_index: dict[int, _Known] = {}
        self._last: _Known | None = None
        self._count = 0
        self.types: set[str | None] = set()
        """The types of the items that were spoken of; with None, one of them was never announced."""

    @property
    def empty(self) -> bool:
        """Whether no item was spoken of yet."""
        return self._count == 0

    def begun(self, index: int | None, ids: Sequence[str], item_type: str) -> str:
        """The key of an item that is announced: a new one unless this repeats the announcement of an open item."""
        known = self._find(index, ids)
        if known is not None and not known.ended and known.type == item_type and _same(known.index, index):
            return known.key
        return self._new(index, ids, item_type).key

    def of(self, index: int | None, item_id: str | None) -> str:
        """The key of the item that a part, a delta or another event belongs to."""
        known = self._by_id.get(item_id) if item_id is not None else None
        if known is None:
            known = self._guess(index, item_id)
        return known.key

    def ended(self, index: int | None, ids: Sequence[str], item_type: str) -> str:
        """The key of an item that is complete: the one announced, or a new one when none was."""
        known = self._find(index, ids)
        if known is None and self._is_last(index, item_type):
            known = self._last
        if known is None or known.type not in (None, item_type):
            known = self._new(index, ids, item_type)
        self._by_id.update(dict.fromkeys(ids, known))
        known.ended = True
        return known.key

    def whole(self, index: int, ids: Sequence[str], item_type: str) -> str:
        """The key of an item of a complete answer, where the place alone tells items apart."""
        known = self._new(index, ids, item_type)
        known.ended = True
        return known.key

    def _is_last(self, index: int | None, item_type: str) -> bool:
        """Whether an end under names never heard before may be that of the item begun last. SGLang ends a message and
        reasoning under another id, and with the next item's index."""
        last = self._last
        if last is None or last.ended:
            return False
        return index is None or (last.named and last.type == item_type and item_type in TEXT_ITEMS)

    def _find(self, index: int | None, ids: Sequence[str]) -> _Known | None:
        for item_id in ids:
            if item_id in self._by_id:
                return self._by_id[item_id]
        known = self._by_index.get(index) if index is not None else None
        return None if known is not None and known.ended and ids else known

    def _guess(self, index: int | None, item_id: str | None) -> _Known:
        ids = (item_id,) if item_id is not None else ()
        known = self._find(index, ids)
        if known is None and index is None and self._last is not None and not (ids and self._last.named):
            known = self._last
        if known is None:
            return self._new(index, ids, None)
        self._by_id.update(dict.fromkeys(ids, known))
        return known

    def _new(self, index: int | None, ids: Sequence[str], item_type: str | None) -> _Known:
        key = ids[0] if self._ids_are_keys and ids else f"item_{self._count}"
        known = _Known(key, item_type, index, bool(ids))
        self.types.add(item_type)
        self._count += 1
        self._by_id.update(dict.fromkeys(ids, known))
        if index is not None:
            self._by_index[index] = known
        self._last = known
        return known


def _same(known: int | None, index: int | None) -> bool:
    return known is None or index is None or known == index
