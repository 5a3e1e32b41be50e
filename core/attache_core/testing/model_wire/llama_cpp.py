"""llama.cpp's wire: no sequence numbers, no indexes, lifecycle events that say almost nothing.

Source: recordings of llama-server with a small Gemma model and, for reasoning and function calls, which that model does
not make, its published behaviour. Items open one after another but are all closed at the very end; a finished
function call has no id; arguments have deltas and no end of their own; a truncated answer is `completed` all the same.
"""

from __future__ import annotations

from collections.abc import Iterator

from attache_core.json_codec import Json
from attache_core.testing.model_script import Failure, FunctionCall, Item, Message, Reasoning, Said
from attache_core.testing.model_wire.wire import Wire, new_id, pieces_of

_PREFIXES = {Message: "msg", Reasoning: "rs", FunctionCall: "fc"}


class LlamaCppWire(Wire):
    """One answer as llama.cpp writes it."""

    def __init__(self, request: Json, said: Said) -> None:
        super().__init__(request, said)
        if said.incomplete_reason:
            raise ValueError("llama.cpp has no way to say that an answer is incomplete")
        self.ids = [_item_id(item) for item in said.items]

    def opening(self) -> Json:
        return {"id": self.response_id, "object": "response", "status": "in_progress"}

    def response(self) -> Json:
        return {
            "completed_at": self.created_at,
            "created_at": self.created_at,
            "id": self.response_id,
            "model": self.model,
            "object": "response",
            "output": self._output(),
            "status": "completed",
            "usage": self._usage(),
        }

    def failed(self, failure: Failure) -> Json:
        return {**self.opening(), "status": "failed", "error": {"code": failure.code, "message": failure.message}}

    def error_body(self, status: int, message: str, code: str | None = None, param: str | None = None) -> Json:
        del code, param
        kind = "invalid_request_error" if status < 500 else "server_error"
        return {"error": {"code": status, "message": message, "type": kind}}

    def events(self) -> list[Json]:
        told = super().events()
        if self.said.failure is None:
            final = self.response()
            del final["completed_at"]
            told[-1] = {"type": "response.completed", "response": final, "timings": _TIMINGS}
        return told

    def message_events(self, index: int, item: Message) -> Iterator[Json]:
        item_id = self.ids[index]
        opened = {"content": [], "id": item_id, "role": "assistant", "status": "in_progress", "type": "message"}
        yield {"type": "response.output_item.added", "item": opened}
        yield {"type": "response.content_part.added", "item_id": item_id, "part": {"type": "output_text", "text": ""}}
        for delta in item.deltas:
            yield {"type": "response.output_text.delta", "item_id": item_id, "delta": delta}

    def reasoning_events(self, index: int, item: Reasoning) -> Iterator[Json]:
        opened = {**self._finished(index, item), "content": [], "status": "in_progress"}
        yield {"type": "response.output_item.added", "item": opened}
        for delta in item.deltas:
            yield {"type": "response.reasoning_text.delta", "delta": delta, "item_id": self.ids[index]}

    def call_events(self, index: int, item: FunctionCall) -> Iterator[Json]:
        opened = {**self._finished(index, item), "arguments": "", "status": "in_progress"}
        yield {"type": "response.output_item.added", "item": opened}
        for delta in pieces_of(item.arguments):
            yield {"type": "response.function_call_arguments.delta", "delta": delta, "item_id": self.ids[index]}

    def _items_told(self) -> Iterator[Json]:
        yield from super()._items_told()
        if self.said.failure is None:
            for index, item in enumerate(self.said.items):
                yield from self._ends(index, item)

    def _ends(self, index: int, item: Item) -> Iterator[Json]:
        if isinstance(item, Message):
            item_id = self.ids[index]
            yield {"type": "response.output_text.done", "item_id": item_id, "text": item.text}
            yield {"type": "response.content_part.done", "item_id": item_id, "part": _text_part(item)}
        yield {"type": "response.output_item.done", "item": self._finished(index, item)}

    def _output(self) -> list[Json]:
        return [self._finished(index, item) for index, item in enumerate(self.said.items)]

    def _finished(self, index: int, item: Item) -> Json:
        item_id = self.ids[index]
        match item:
            case Message():
                part = _text_part(item)
                return {"type": "message", "status": "completed", "id": item_id, "content": [part], "role": "assistant"}
            case Reasoning():
                content = [{"text": item.text, "type": "reasoning_text"}]
                return {"id": item_id, "summary": [], "type": "reasoning", "content": content, "encrypted_content": ""}
            case FunctionCall():
                return {
                    "type": "function_call",
                    "status": "completed",
                    "arguments": item.arguments,
                    "call_id": item_id,
                    "name": item.name,
                }

    def _usage(self) -> Json:
        given, said = self.token_counts()
        return {
            "input_tokens": given,
            "output_tokens": said,
            "total_tokens": given + said,
            "input_tokens_details": {"cached_tokens": 0},
        }


_TIMINGS: Json = {
    "cache_n": 0,
    "prompt_n": 1,
    "prompt_ms": 1.5,
    "prompt_per_token_ms": 1.5,
    "prompt_per_second": 666.7,
    "predicted_n": 1,
    "predicted_ms": 1.5,
    "predicted_per_token_ms": 1.5,
    "predicted_per_second": 666.7,
}


def _item_id(item: Item) -> str:
    """A function call is known by its `call_id` alone, which is `fc_` and the id that the model's parser gave."""
    if isinstance(item, FunctionCall) and item.call_id:
        return item.call_id
    return f"{_PREFIXES[type(item)]}_{new_id()}"


def _text_part(item: Message) -> Json:
    return {"type": "output_text", "annotations": [], "logprobs": [], "text": item.text}
