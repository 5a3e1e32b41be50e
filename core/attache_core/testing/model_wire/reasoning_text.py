"""What vLLM's other front end and SGLang have in common: the API's events, with reasoning as text that is in no part.

Source: recordings of both.
"""

from __future__ import annotations

from collections.abc import Iterator

from attache_core.json_codec import Json
from attache_core.testing.model_script import Item, Reasoning
from attache_core.testing.model_wire.openai import OpenAiWire


class ReasoningTextWire(OpenAiWire):
    """One answer, without `obfuscation` and without part events of reasoning."""

    def events(self) -> list[Json]:
        return [{name: value for name, value in event.items() if name != "obfuscation"} for event in super().events()]

    def reasoning_events(self, index: int, item: Reasoning) -> Iterator[Json]:
        at = {"content_index": 0, "item_id": self.ids[index], "output_index": index}
        opened = self.opened_reasoning(self._finished(index, item))
        yield {"type": "response.output_item.added", "item": opened, "output_index": index}
        for delta in item.deltas:
            yield {"type": "response.reasoning_text.delta", **at, "delta": delta}
        yield {"type": "response.reasoning_text.done", **at, "text": item.text}
        yield self._done(index, item)

    def opened_reasoning(self, finished: Json) -> Json:
        """A reasoning item as it is announced."""
        return {**finished, "content": []}

    def _finished(self, index: int, item: Item) -> Json:
        if not isinstance(item, Reasoning):
            return super()._finished(index, item)
        content = [{"text": item.text, "type": "reasoning_text"}]
        return {"id": self.ids[index], "summary": [], "type": "reasoning", "content": content}
