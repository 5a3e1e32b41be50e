"""Payloads of upstream streams, and what they come to, for the tests of all dialects."""

from __future__ import annotations

from typing import Any

from attache_core.events.dialects import DialectName, dialect_for
from attache_core.json_codec import Json
from core.events.pipeline import accumulated, new_accumulator, read_payloads

CREATED: Json = {"type": "response.created", "response": {"id": "resp_up", "status": "in_progress"}}


def completed(*output: Json, **fields: Any) -> Json:
    return {"type": "response.completed", "response": {"status": "completed", "output": list(output), **fields}}


def built(payloads: list[Json], name: DialectName = "auto") -> list[Json]:
    """The items that payloads come to."""
    accumulator = new_accumulator()
    accumulated(read_payloads(payloads, dialect_for(name)), accumulator)
    return [item for _, item in accumulator.items]


def message(text: str, **fields: Any) -> Json:
    part = {"type": "output_text", "annotations": [], "logprobs": [], "text": text}
    return {"type": "message", "status": "completed", "content": [part], "role": "assistant", **fields}


def call(arguments: str, name: str = "look", call_id: str = "call_a") -> Json:
    return {
        "type": "function_call", "status": "completed", "arguments": arguments, "call_id": call_id, "name": name,
    }  # fmt: skip


def call_stream(*deltas: str, done: str, index: int = 0, item_id: str = "fc_1", call_id: str = "call_a") -> list[Json]:
    place = {"item_id": item_id, "output_index": index}
    item = {**call("", call_id=call_id), "id": item_id, "status": "in_progress"}
    return [
        {"type": "response.output_item.added", "output_index": index, "item": item},
        *({"type": "response.function_call_arguments.delta", "delta": delta, **place} for delta in deltas),
        {"type": "response.function_call_arguments.done", "arguments": done, "name": "look", **place},
        {
            "type": "response.output_item.done",
            "output_index": index,
            "item": {**call(done, call_id=call_id), "id": item_id},
        },
    ]
