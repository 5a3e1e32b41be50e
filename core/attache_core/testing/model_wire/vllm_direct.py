"""The wire of vLLM's other front end, the one in the `direct-vllm` recordings.

Source: these recordings, of Qwen3.6. Ids are UUIDs, the same in the stream and at its end; the stream ends with
`[DONE]`; the first delta of a call's arguments is `{}`, which is not part of them; a call has a `namespace` in the
final response alone. Of an answer that is incomplete or fails there is no recording: it is written as OpenAI does.
"""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

from attache_core.json_codec import Json
from attache_core.testing.model_script import FunctionCall, Said
from attache_core.testing.model_wire.reasoning_text import ReasoningTextWire
from attache_core.testing.model_wire.wire import pieces_of


class DirectVllmWire(ReasoningTextWire):
    """One answer as this front end writes it."""

    def __init__(self, request: Json, said: Said) -> None:
        super().__init__(request, said)
        self.response_id = f"resp_{uuid4()}"
        self.ids = [f"{item_id.partition('_')[0]}_{uuid4()}" for item_id in self.ids]

    def frames(self) -> list[bytes]:
        *told, last = super().frames()
        return [*told, last + b"data: [DONE]\n\n"]

    def response(self) -> Json:
        said = super().response()
        output = [{**item, "namespace": None} if "call_id" in item else item for item in said["output"]]
        return {**said, "output": output}

    def call_events(self, index: int, item: FunctionCall) -> Iterator[Json]:
        at = {"content_index": 0, "item_id": self.ids[index], "output_index": index}
        opened = {**self._finished(index, item), "status": "in_progress", "arguments": ""}
        yield {"type": "response.output_item.added", "item": opened, "output_index": index}
        for delta in ("{}", *pieces_of(item.arguments)):
            yield {"type": "response.function_call_arguments.delta", **at, "delta": delta}
        yield {"type": "response.function_call_arguments.done", **at, "arguments": item.arguments}
        yield self._done(index, item)

    def _snapshot(self, status: str, output: list[Json], usage: Json | None) -> Json:
        said = super()._snapshot(status, output, usage)
        reasoning = {"effort": "medium", "summary": None}
        return {**said, "conversation": None, "prompt": None, "reasoning": reasoning, "service_tier": "default"}
