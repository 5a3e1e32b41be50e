"""vLLM's wire, oddities and all: the upstream that this project meets first.

Source: recordings of vLLM with Qwen3 (`VllmWire`) and with gpt-oss (`HarmonyWire`). Both: the ids of items and calls in
the stream are not those of the final response; `store`, `error` and `completed_at` are missing; `metadata` and `text`
are null; usage has `*_per_turn` arrays; the terminal event is `response.completed` even when its response is
`incomplete`; `tool_choice` is `none` without tools, and a forced one leaks into `text`. With a chat template, streamed
arguments have white space that the final ones lack. With gpt-oss, a message's `content_index` is its place in the
output, and a call's `output_item.done` has no id but three stray fields.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

from attache_core.json_codec import Json
from attache_core.testing.model_script import Failure, FunctionCall, Item, Message, Reasoning, Said
from attache_core.testing.model_wire.wire import Wire, new_id, numbered, pieces_of

MAX_OUTPUT_TOKENS = 40944
"""What vLLM fills in when the client names no limit: the rest of the model's context."""

_FINAL_PREFIXES = {Message: "msg", Reasoning: "rs", FunctionCall: "fc"}


class VllmWire(Wire):
    """One answer as vLLM writes it for a model with a chat template."""

    def __init__(self, request: Json, said: Said) -> None:
        super().__init__(request, said)
        self.stream_ids = [self.stream_id(item) for item in said.items]
        self.stream_call_ids = [f"call_{new_id()}" for _ in said.items]
        self.final_items = [self.final_item(item) for item in said.items]

    def stream_id(self, item: Item) -> str:
        """The id of an item while it is streamed: bare digits."""
        del item
        return new_id()

    def streamed_arguments(self, item: FunctionCall) -> str:
        """Arguments as the model wrote them, before they are parsed and written again."""
        try:
            value = json.loads(item.arguments)
        except ValueError:
            return item.arguments
        return json.dumps(value, ensure_ascii=False).replace("{", "{ ", 1) + " "

    def content_index(self, output_index: int) -> int:
        """The `content_index` of a message's only part."""
        del output_index
        return 0

    def final_call_id(self, item_id: str) -> str:
        """The `call_id` of the final response, another than that of the stream."""
        del item_id
        return f"chatcmpl-tool-{new_id()}"

    def events(self) -> list[Json]:
        return [dict(sorted(event.items())) for event in numbered(self._told())]

    def terminal_type(self) -> str:
        return "response.completed"

    def opening(self) -> Json:
        return self._snapshot("in_progress", [], None)

    def response(self) -> Json:
        status = "incomplete" if self.said.incomplete_reason else "completed"
        return self._snapshot(status, self.final_items, self._usage())

    def failed(self, failure: Failure) -> Json:
        error = {"code": failure.code, "message": failure.message}
        return {**self._snapshot("failed", [], None), "error": error}

    def error_body(self, status: int, message: str, code: str | None = None, param: str | None = None) -> Json:
        del code
        kind = "BadRequestError" if status < 500 else "InternalServerError"
        return {"error": {"message": message, "type": kind, "param": param, "code": status}}

    def message_events(self, index: int, item: Message) -> Iterator[Json]:
        at = {"content_index": self.content_index(index), "item_id": self.stream_ids[index], "output_index": index}
        opened = _message(self.stream_ids[index], [], "in_progress")
        empty = {"annotations": [], "text": "", "type": "output_text", "logprobs": []}
        yield {"type": "response.output_item.added", "item": opened, "output_index": index}
        yield {"type": "response.content_part.added", "part": empty, **at}
        for delta in item.deltas:
            yield {"type": "response.output_text.delta", "delta": delta, "logprobs": [], **at}
        yield {"type": "response.output_text.done", "text": item.text, "logprobs": [], **at}
        yield {"type": "response.content_part.done", "part": _text_part(item), **at}
        done = _message(self.stream_ids[index], [_text_part(item)], "completed")
        stray = self.stray_message_fields()
        yield {"type": "response.output_item.done", "item": {**done, **stray}, "output_index": index}

    def stray_message_fields(self) -> Json:
        """After reasoning, a message's end carries the fields of the reasoning item."""
        return {"summary": []} if any(isinstance(item, Reasoning) for item in self.said.items) else {}

    def reasoning_events(self, index: int, item: Reasoning) -> Iterator[Json]:
        at = {"content_index": 0, "item_id": self.stream_ids[index], "output_index": index}
        opened = _reasoning(self.stream_ids[index], None, "in_progress")
        part = {"text": item.text, "type": "reasoning_text"}
        done = _reasoning(self.stream_ids[index], [part], "completed")
        yield {"type": "response.output_item.added", "item": opened, "output_index": index}
        yield {"type": "response.reasoning_part.added", "part": {**part, "text": ""}, **at}
        for delta in item.deltas:
            yield {"type": "response.reasoning_text.delta", "delta": delta, **at}
        yield {"type": "response.reasoning_text.done", "text": item.text, **at}
        yield {"type": "response.reasoning_part.done", "part": part, **at}
        yield {"type": "response.output_item.done", "item": done, "output_index": index}

    def call_events(self, index: int, item: FunctionCall) -> Iterator[Json]:
        written = self.streamed_arguments(item)
        at = {"item_id": self.stream_ids[index], "output_index": index}
        call = replace(item, arguments=written, call_id=item.call_id or self.stream_call_ids[index])
        opened = _function_call(self.stream_ids[index], replace(call, arguments=""), "in_progress")
        yield {"type": "response.output_item.added", "item": opened, "output_index": index}
        for delta in pieces_of(written):
            yield {"type": "response.function_call_arguments.delta", "delta": delta, **at}
        yield {"type": "response.function_call_arguments.done", "arguments": written, "name": item.name, **at}
        yield {"type": "response.output_item.done", "item": self.finished_call(index, call), "output_index": index}

    def finished_call(self, index: int, item: FunctionCall) -> Json:
        """A call as its `output_item.done` has it."""
        return _function_call(self.stream_ids[index], item, "completed")

    def final_item(self, item: Item) -> Json:
        """An item of the final response, under ids that the stream never had."""
        item_id = f"{_FINAL_PREFIXES[type(item)]}_{new_id()}"
        match item:
            case Message():
                status = "incomplete" if self.said.incomplete_reason else "completed"
                return _message(item_id, [_text_part(item)], status)
            case Reasoning():
                return _reasoning(item_id, [{"text": item.text, "type": "reasoning_text"}], None)
            case FunctionCall():
                call = replace(item, call_id=item.call_id or self.final_call_id(item_id))
                return _function_call(item_id, call, self.final_call_status())

    def final_call_status(self) -> str | None:
        """The `status` of a call in the final response."""
        return "completed"

    def tokens_per_turn(self, tokens: int) -> list[int]:
        """The `*_per_turn` arrays of the usage: empty but with gpt-oss."""
        del tokens
        return []

    def _usage(self) -> Json:
        given, said = self.token_counts()
        thought = sum(len(item.deltas) for item in self.said.items if isinstance(item, Reasoning))
        return {
            "input_tokens": given,
            "input_tokens_details": {
                "cached_tokens": 0,
                "input_tokens_per_turn": self.tokens_per_turn(given),
                "cached_tokens_per_turn": self.tokens_per_turn(0),
            },
            "output_tokens": said,
            "output_tokens_details": {
                "reasoning_tokens": thought,
                "tool_output_tokens": 0,
                "output_tokens_per_turn": self.tokens_per_turn(said),
                "tool_output_tokens_per_turn": self.tokens_per_turn(0),
            },
            "total_tokens": given + said,
        }

    def _snapshot(self, status: str, output: list[Json], usage: Json | None) -> Json:
        asked = self.request
        tools: list[Json] = asked.get("tools") or []
        reason = self.said.incomplete_reason if status == "incomplete" else None
        return {
            "id": self.response_id,
            "created_at": self.created_at,
            "incomplete_details": {"reason": reason} if reason else None,
            "instructions": asked.get("instructions"),
            "metadata": asked.get("metadata"),
            "model": self.model,
            "object": "response",
            "output": output,
            "parallel_tool_calls": asked.get("parallel_tool_calls", True),
            "temperature": asked.get("temperature", 0.6),
            "tool_choice": asked.get("tool_choice", "auto") if tools else "none",
            "tools": [_echoed_tool(tool) for tool in tools],
            "top_p": asked.get("top_p", 0.95),
            "background": False,
            "max_output_tokens": asked.get("max_output_tokens") or MAX_OUTPUT_TOKENS,
            "max_tool_calls": None,
            "previous_response_id": None,
            "prompt": None,
            "reasoning": asked.get("reasoning"),
            "service_tier": "auto",
            "status": status,
            "text": asked.get("text") or self.leaked_text_format(tools),
            "top_logprobs": None,
            "truncation": "disabled",
            "usage": usage,
            "user": None,
            "presence_penalty": 0.0,
            "frequency_penalty": 0.0,
            "kv_transfer_params": None,
            "input_messages": None,
            "output_messages": None,
        }

    def leaked_text_format(self, tools: list[Json]) -> Json | None:
        """How vLLM forces a tool call: as a JSON schema, which then shows in `text`."""
        if not tools or self.request.get("tool_choice", "auto") in ("auto", "none"):
            return None
        forms = [
            {
                "properties": {
                    "name": {"type": "string", "enum": [tool.get("name")]},
                    "parameters": tool.get("parameters"),
                },
                "required": ["name", "parameters"],
            }
            for tool in tools
        ]
        schema = {"type": "array", "minItems": 1, "items": {"type": "object", "anyOf": forms}}
        form = {"name": "tool_calling_response", "schema": schema, "type": "json_schema", "description": None}
        return {"format": {**form, "strict": True}, "verbosity": None}


class HarmonyWire(VllmWire):
    """One answer as vLLM writes it for gpt-oss."""

    def stream_id(self, item: Item) -> str:
        return f"{'fc' if isinstance(item, FunctionCall) else 'msg'}_{new_id()}"

    def streamed_arguments(self, item: FunctionCall) -> str:
        return item.arguments

    def content_index(self, output_index: int) -> int:
        return output_index

    def final_call_id(self, item_id: str) -> str:
        return item_id.replace("fc_", "call_", 1)

    def stray_message_fields(self) -> Json:
        return {}

    def finished_call(self, index: int, item: FunctionCall) -> Json:
        done = {**super().finished_call(index, item), "id": None}
        return {**done, "item_id": self.stream_ids[index], "output_index": index, "sequence_number": -1}

    def final_call_status(self) -> str | None:
        return None

    def tokens_per_turn(self, tokens: int) -> list[int]:
        return [tokens]

    def leaked_text_format(self, tools: list[Json]) -> Json | None:
        del tools
        return None


def _message(item_id: str, content: list[Json], status: str) -> Json:
    return {
        "id": item_id,
        "content": content,
        "role": "assistant",
        "status": status,
        "type": "message",
        "phase": None,
    }


def _reasoning(item_id: str, content: list[Json] | None, status: str | None) -> Json:
    return {
        "id": item_id,
        "summary": [],
        "type": "reasoning",
        "content": content,
        "encrypted_content": None,
        "status": status,
    }


def _function_call(item_id: str, item: FunctionCall, status: str | None) -> Json:
    return {
        "arguments": item.arguments,
        "call_id": item.call_id,
        "name": item.name,
        "type": "function_call",
        "id": item_id,
        "namespace": None,
        "status": status,
    }


def _text_part(item: Message) -> Json:
    return {"annotations": [], "text": item.text, "type": "output_text", "logprobs": None}


def _echoed_tool(tool: Json) -> Json:
    return {
        "name": tool.get("name"),
        "parameters": tool.get("parameters"),
        "strict": tool.get("strict"),
        "type": tool.get("type"),
        "defer_loading": None,
        "description": tool.get("description"),
    }
