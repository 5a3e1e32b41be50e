"""SGLang's wire.

Source: for models with a chat template, recordings of SGLang 0.5.18 with Qwen3; for gpt-oss, which was not recorded,
its published code. With a chat template: a call's `done` event has its `name`; tools are not echoed in a stream. With
gpt-oss: every item of a stream has the same id, output indexes begin at 1, the part of reasoning is announced as
`output_text`, an item ends with the next item's index and a reasoning item under another id, and calls are in the final
response alone, whose event is `response.completed` even when it is incomplete.
"""

from __future__ import annotations

from collections.abc import Iterator

from attache_core.json_codec import Json
from attache_core.testing.model_script import FunctionCall, Item, Message, Reasoning, Said
from attache_core.testing.model_wire.reasoning_text import ReasoningTextWire
from attache_core.testing.model_wire.wire import new_id


class SglangWire(ReasoningTextWire):
    """One answer as SGLang writes it for a model with a chat template."""

    def error_body(self, status: int, message: str, code: str | None = None, param: str | None = None) -> Json:
        del code
        kind = "BadRequestError" if status < 500 else "InternalServerError"
        return {"error": {"message": message, "type": kind, "param": param, "code": status}}

    def message_events(self, index: int, item: Message) -> Iterator[Json]:
        for event in super().message_events(index, item):
            yield {**event, "part": {**event["part"], "logprobs": None}} if "part" in event else event

    def call_events(self, index: int, item: FunctionCall) -> Iterator[Json]:
        for event in super().call_events(index, item):
            named = event["type"] == "response.function_call_arguments.done"
            yield {**event, "name": item.name} if named else event

    def opened_reasoning(self, finished: Json) -> Json:
        return {**super().opened_reasoning(finished), "status": "in_progress"}

    def _finished(self, index: int, item: Item) -> Json:
        said = super()._finished(index, item)
        if isinstance(item, Reasoning):
            return {**said, "encrypted_content": None, "status": "completed"}
        if isinstance(item, Message):
            return {**said, "content": [{**part, "logprobs": None} for part in said["content"]]}
        return said

    def _usage(self) -> Json:
        usage = super()._usage()
        return {**usage, "input_tokens_details": {"cache_write_tokens": 0, **usage["input_tokens_details"]}}

    def _snapshot(self, status: str, output: list[Json], usage: Json | None) -> Json:
        said = super()._snapshot(status, output, usage)
        asked = {name: self.request.get(name) for name in _ONLY_ECHOED}
        return (
            {name: said.get(name) for name in _SNAPSHOT_FIELDS}
            | asked
            | {
                "reasoning": {"effort": None, "generate_summary": None, "summary": None},
                "tools": [],
            }
        )


_SNAPSHOT_FIELDS = (
    "id", "created_at", "error", "incomplete_details", "instructions", "metadata", "model", "object", "output",
    "parallel_tool_calls", "temperature", "tool_choice", "tools", "top_p", "background", "conversation",
    "max_output_tokens", "max_tool_calls", "previous_response_id", "prompt", "prompt_cache_key", "reasoning",
    "safety_identifier", "service_tier", "status", "text", "top_logprobs", "truncation", "usage", "user", "store",
)  # fmt: skip

_ONLY_ECHOED = ("temperature", "top_p", "background", "service_tier", "text", "top_logprobs")
"""Fields that are null unless the request has them."""


class SglangHarmonyWire(SglangWire):
    """One answer as SGLang writes it for gpt-oss."""

    def __init__(self, request: Json, said: Said) -> None:
        super().__init__(request, said)
        self.stream_id = f"item_{new_id()}"

    def terminal_type(self) -> str:
        return "response.completed"

    def message_events(self, index: int, item: Message) -> Iterator[Json]:
        yield from self._opened(index, {**self._finished(index, item), "content": [], "status": "in_progress"})
        for delta in item.deltas:
            yield {"type": "response.output_text.delta", **self._at(index), "delta": delta, "logprobs": []}
        end = self._at(index + 1)
        done = {**self._finished(index, item), "id": self.stream_id}
        yield {"type": "response.output_text.done", **end, "text": item.text, "logprobs": []}
        yield {"type": "response.content_part.done", **end, "part": done["content"][0]}
        yield {"type": "response.output_item.done", "output_index": end["output_index"], "item": done}

    def reasoning_events(self, index: int, item: Reasoning) -> Iterator[Json]:
        yield from self._opened(index, self.opened_reasoning(self._finished(index, item)))
        for delta in item.deltas:
            yield {"type": "response.reasoning_text.delta", **self._at(index), "delta": delta}
        end, done = self._at(index + 1), {**self._finished(index, item), "id": f"rs_{new_id()}"}
        yield {"type": "response.reasoning_text.done", **end, "text": item.text}
        yield {"type": "response.output_item.done", "output_index": end["output_index"], "item": done}

    def call_events(self, index: int, item: FunctionCall) -> Iterator[Json]:
        del index, item
        return iter(())

    def _opened(self, index: int, item: Json) -> Iterator[Json]:
        part: Json = {"type": "output_text", "annotations": [], "logprobs": None, "text": ""}
        at = self._at(index)
        opened = {**item, "id": self.stream_id}
        yield {"type": "response.output_item.added", "output_index": at["output_index"], "item": opened}
        yield {"type": "response.content_part.added", **at, "part": part}

    def _at(self, index: int) -> Json:
        return {"content_index": 0, "item_id": self.stream_id, "output_index": index + 1}
