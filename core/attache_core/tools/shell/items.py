"""The public life of a call whose commands the gateway runs: a `shell_call`, and a `shell_call_output` after it. Pure.

Source: types of the `openai` package; OpenAI's streams of hosted shells.
"""

from __future__ import annotations

from collections.abc import Sequence

from attache_core import json_codec
from attache_core.events.model_events import ItemAdded, ItemDone, ItemEvent, ModelEvent
from attache_core.json_codec import Json
from attache_core.tools.call_errors import REQUEST_TIMEOUT
from attache_core.tools.client.action_call import NO_CALLER
from attache_core.tools.client.shell import ShellCall
from attache_core.tools.gateway_tool import CallMade, CallResult

_NOT_RUN = 126
"""What a shell exits with when it cannot run a command."""


def call_life(call: CallMade, environment: Json) -> list[ModelEvent]:
    """The call, from its beginning to its end: all of it is known before it is run."""
    said = {"type": "function_call", "call_id": call.call_id, "arguments": call.arguments}
    return ShellCall(environment).feed(ItemDone(call.key, said))


def output_life(call: CallMade, result: CallResult) -> list[ModelEvent]:
    """What came of it."""
    key = f"{call.key}\0output"
    outputs: list[Json] = [_failed(result)] if result.output is None else json_codec.decode(result.output)
    status = "completed" if result.error is None else "incomplete"
    shown = {"call_id": call.call_id, "max_output_length": _max_output_length(call), **NO_CALLER}
    item: Json = {"type": "shell_call_output", "status": "in_progress", **shown, "output": []}
    done = {**item, "status": status, "output": outputs}
    return [ItemAdded(key, item), *_contents(key, outputs), ItemDone(key, done)]


def _contents(key: str, outputs: Sequence[Json]) -> list[ModelEvent]:
    said: list[ModelEvent] = []
    for index, output in enumerate(outputs):
        delta = {name: output[name] for name in ("stdout", "stderr")}
        if any(delta.values()):
            given = {"command_index": index, "delta": delta}
            said.append(ItemEvent(key, "response.shell_call_output_content.delta", given))
        ended = {"command_index": index, "output": [output]}
        said.append(ItemEvent(key, "response.shell_call_output_content.done", ended))
    return said


def _failed(result: CallResult) -> Json:
    timed_out = result.error is not None and result.error.get("code") == REQUEST_TIMEOUT
    outcome = {"type": "timeout"} if timed_out else {"type": "exit", "exit_code": _NOT_RUN}
    return {"created_by": None, "outcome": outcome, "stderr": result.model_text, "stdout": ""}


def _max_output_length(call: CallMade) -> int | None:
    [*_, done] = ShellCall().feed(ItemDone(call.key, {"arguments": call.arguments}))
    assert isinstance(done, ItemDone)
    length: int | None = done.item["action"]["max_output_length"]
    return length
