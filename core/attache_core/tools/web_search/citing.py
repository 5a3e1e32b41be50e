"""Puts citations into what the model says: from the model's events to the same events with annotations.

Knows the pages that calls have shown, of this response and of the conversation before it; where a text part ends, it
says which of them the text cites, before the part's end and in it. A part that an inference server annotated itself
stays as it is. Sans-IO; one object for each response.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from attache_core.events.model_events import AnnotationAdded, ItemDone, ModelEvent, PartDone
from attache_core.json_codec import Json
from attache_core.tools.web_search.citations import citations
from attache_core.tools.web_search.item import ITEM, sources_of
from attache_core.tools.web_search.results import Source

MAX_SOURCES = 2000
"""Of the pages of a long conversation, the latest are known."""


class Citing:
    """Feed it the strict events of a response, those of the calls included."""

    def __init__(self, history: Iterable[Json] = ()) -> None:
        """`history` are the items of the input, as they were kept."""
        self._sources: dict[str, Source] = {}
        self._cited: dict[tuple[str, int], list[Json]] = {}
        for item in history:
            self._learn(item)

    def feed(self, said: ModelEvent) -> list[ModelEvent]:
        """The event, annotated, after the annotations that belong before it."""
        if isinstance(said, PartDone) and said.body.get("type") == "output_text":
            return self._end_part(said)
        if isinstance(said, ItemDone):
            self._learn(said.item)
            return [self._end_item(said)]
        return [said]

    def _learn(self, item: Json) -> None:
        if item.get("type") != ITEM:
            return
        for source in sources_of(item):
            self._sources.pop(source.url, None)
            self._sources[source.url] = source
        for url in list(self._sources)[:-MAX_SOURCES]:
            del self._sources[url]

    def _end_part(self, said: PartDone) -> list[ModelEvent]:
        found = [] if said.body.get("annotations") else citations(said.body["text"], self._sources.values())
        if not found:
            return [said]
        self._cited[said.key, said.part] = found
        added = [AnnotationAdded(said.key, said.part, annotation) for annotation in found]
        return [*added, replace(said, body={**said.body, "annotations": found})]

    def _end_item(self, said: ItemDone) -> ItemDone:
        parts = said.item.get("content")
        if said.item.get("type") != "message" or not isinstance(parts, list):
            return said
        cited = [self._cited.pop((said.key, place), None) for place in range(len(parts))]
        if not any(cited):
            return said
        content = [{**part, "annotations": found} if found else part for part, found in zip(parts, cited, strict=True)]
        return replace(said, item={**said.item, "content": content})
