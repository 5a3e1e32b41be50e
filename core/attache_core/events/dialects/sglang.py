"""SGLang's server.

With gpt-oss it streams all items under one id, announces the part of reasoning as `output_text`, ends items under
another id and with the next item's index, and names function calls in the final response alone. In plain answers of
earlier versions, usage has the names of Chat Completions. With other models there is nothing to forgive. What is not
here is the base reader's ordinary tolerance. Source: recordings of 0.5.18 with Qwen3; for the rest, its published code,
`srt/entrypoints/openai/serving_responses.py`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from attache_core.events.dialects.base import Dialect
from attache_core.events.model_events import ItemAdded
from attache_core.events.text_done import SaidEvent
from attache_core.json_codec import Json

_CHAT_NAMES: Final = {
    "prompt_tokens": "input_tokens",
    "prompt_tokens_details": "input_tokens_details",
    "completion_tokens": "output_tokens",
}


class SglangDialect(Dialect):
    """Does not take a part of reasoning for the beginning of a message."""

    def __init__(self) -> None:
        super().__init__()
        self._reasoning: set[str] = set()

    def _item_added(self, payload: Json) -> SaidEvent:
        said = super()._item_added(payload)
        if isinstance(said, ItemAdded) and said.item["type"] == "reasoning":
            self._reasoning.add(said.key)
        return said

    def _part(self, kind: str, payload: Json) -> Iterable[SaidEvent]:
        part = payload.get("part")
        misnamed = isinstance(part, dict) and part.get("type") == "output_text"
        return () if misnamed and self._key(payload) in self._reasoning else super()._part(kind, payload)

    def _usage(self, given: Json | None) -> Json | None:
        if not isinstance(given, dict) or "prompt_tokens" not in given:
            return super()._usage(given)
        usage: Json = {_CHAT_NAMES.get(name, name): value for name, value in given.items()}
        usage.setdefault("output_tokens_details", {"reasoning_tokens": given.get("reasoning_tokens")})
        return super()._usage(usage)
