"""OpenAI's own wire: what a gateway's clients expect, and what an upstream may be.

Source: recordings of gpt-4o, gpt-5-nano and gpt-5-mini. Every field is there, ids are the same in the stream and at its
end, deltas carry an `obfuscation`, reasoning is told as a summary, and the stream has no `[DONE]`.
"""

from __future__ import annotations

from collections.abc import Iterator

from attache_core.json_codec import Json
from attache_core.testing.model_script import Failure, FunctionCall, Item, Message, Reasoning, Said
from attache_core.testing.model_wire.wire import Wire, new_id, numbered, pieces_of

_PREFIXES = {Message: "msg", Reasoning: "rs", FunctionCall: "fc"}


class OpenAiWire(Wire):
    """One answer as OpenAI writes it."""

    def __init__(self, request: Json, said: Said) -> None:
        super().__init__(request, said)
        self.ids = [f"{_PREFIXES[type(item)]}_{new_id()}" for item in said.items]
        self.call_ids = [
            (item.call_id or f"call_{new_id()}") if isinstance(item, FunctionCall) else "" for item in said.items
        ]

    def events(self) -> list[Json]:
        return list(numbered(self._told()))

    def opening(self) -> Json:
        return self._snapshot("in_progress", [], None)

    def response(self) -> Json:
        status = "incomplete" if self.said.incomplete_reason else "completed"
        output = [self._finished(index, item) for index, item in enumerate(self.said.items)]
        return self._snapshot(status, output, self._usage())

    def failed(self, failure: Failure) -> Json:
        error = {"code": failure.code, "message": failure.message}
        return {**self._snapshot("failed", [], None), "error": error}

    def message_events(self, index: int, item: Message) -> Iterator[Json]:
        at = {"content_index": 0, "item_id": self.ids[index], "output_index": index}
        empty = {"type": "output_text", "annotations": [], "logprobs": [], "text": ""}
        opened = {**self._finished(index, item), "status": "in_progress", "content": []}
        yield {"type": "response.output_item.added", "item": opened, "output_index": index}
        yield {"type": "response.content_part.added", **at, "part": empty}
        for delta in item.deltas:
            yield {"type": "response.output_text.delta", **at, "delta": delta, "logprobs": [], "obfuscation": new_id()}
        yield {"type": "response.output_text.done", **at, "logprobs": [], "text": item.text}
        yield {"type": "response.content_part.done", **at, "part": {**empty, "text": item.text}}
        yield self._done(index, item)

    def reasoning_events(self, index: int, item: Reasoning) -> Iterator[Json]:
        at = {"item_id": self.ids[index], "output_index": index, "summary_index": 0}
        opened = {**self._finished(index, item), "summary": []}
        yield {"type": "response.output_item.added", "output_index": index, "item": opened}
        yield {"type": "response.reasoning_summary_part.added", **at, "part": {"type": "summary_text", "text": ""}}
        for delta in item.deltas:
            yield {"type": "response.reasoning_summary_text.delta", **at, "delta": delta, "obfuscation": new_id()}
        yield {"type": "response.reasoning_summary_text.done", **at, "text": item.text}
        part = {"type": "summary_text", "text": item.text}
        yield {"type": "response.reasoning_summary_part.done", **at, "part": part}
        yield self._done(index, item)

    def call_events(self, index: int, item: FunctionCall) -> Iterator[Json]:
        at = {"item_id": self.ids[index], "output_index": index}
        opened = {**self._finished(index, item), "status": "in_progress", "arguments": ""}
        yield {"type": "response.output_item.added", "output_index": index, "item": opened}
        for delta in pieces_of(item.arguments):
            yield {
                "type": "response.function_call_arguments.delta",
                **at,
                "delta": delta,
                "obfuscation": new_id(),
            }
        yield {"type": "response.function_call_arguments.done", **at, "arguments": item.arguments}
        yield self._done(index, item)

    def _done(self, index: int, item: Item) -> Json:
        return {"type": "response.output_item.done", "output_index": index, "item": self._finished(index, item)}

    def _finished(self, index: int, item: Item) -> Json:
        item_id = self.ids[index]
        match item:
            case Message():
                part = {"type": "output_text", "annotations": [], "logprobs": [], "text": item.text}
                status = "incomplete" if self.said.incomplete_reason else "completed"
                return {"id": item_id, "type": "message", "status": status, "content": [part], "role": "assistant"}
            case Reasoning():
                return {
                    "id": item_id,
                    "type": "reasoning",
                    "summary": [{"type": "summary_text", "text": item.text}],
                }
            case FunctionCall():
                return {
                    "id": item_id,
                    "type": "function_call",
                    "status": "completed",
                    "arguments": item.arguments,
                    "call_id": self.call_ids[index],
                    "name": item.name,
                }

    def _usage(self) -> Json:
        given, said = self.token_counts()
        return {
            "input_tokens": given,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": said,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": given + said,
        }

    def _snapshot(self, status: str, output: list[Json], usage: Json | None) -> Json:
        asked = self.request
        reason = self.said.incomplete_reason if status == "incomplete" else None
        return {
            "id": self.response_id,
            "object": "response",
            "created_at": self.created_at,
            "status": status,
            "background": False,
            "completed_at": self.created_at if status == "completed" else None,
            "error": None,
            "frequency_penalty": 0.0,
            "incomplete_details": {"reason": reason} if reason else None,
            "instructions": asked.get("instructions"),
            "max_output_tokens": asked.get("max_output_tokens"),
            "max_tool_calls": None,
            "model": self.model,
            "output": output,
            "parallel_tool_calls": asked.get("parallel_tool_calls", True),
            "presence_penalty": 0.0,
            "previous_response_id": None,
            "prompt_cache_key": None,
            "prompt_cache_retention": None,
            "reasoning": {"effort": None, "summary": None},
            "safety_identifier": None,
            "service_tier": "auto" if status == "in_progress" else "default",
            "store": asked.get("store", True),
            "temperature": asked.get("temperature", 1.0),
            "text": asked.get("text") or {"format": {"type": "text"}, "verbosity": "medium"},
            "tool_choice": asked.get("tool_choice", "auto"),
            "tools": asked.get("tools", []),
            "top_logprobs": 0,
            "top_p": asked.get("top_p", 1.0),
            "truncation": "disabled",
            "usage": usage,
            "user": None,
            "metadata": asked.get("metadata") or {},
        }
