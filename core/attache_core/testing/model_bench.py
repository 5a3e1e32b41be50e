"""Canned answers for benchmarks: encoded once, served as bytes.

The model's name says what to answer: `bench-200` is a text of 200 deltas at full speed, `bench-200@50` the same at 50
deltas a second, `bench-call` a call of the first function tool with the argument `{"city": "Paris"}` and, once the
call has its output, a short text. Every answer has ids of its own: there are gateways that store what was said under
them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from attache_core.json_codec import Json
from attache_core.testing.model_play import Step, steps_of
from attache_core.testing.model_script import call, function_calls, paced, text
from attache_core.testing.model_wire.wire import new_id

MAX_DELTAS = 100_000
"""More deltas than this are no answer of a model."""

_ID = re.compile(rb"(?<![0-9a-f])[0-9a-f]{16}(?![0-9a-f])")
_TEXT_MODEL = re.compile(r"bench-(\d{1,6})(?:@(\d{1,6}))?")


def bench_steps(body: Json) -> Sequence[Step] | None:
    """The answer that the model's name asks for; None when it is no name of a benchmark."""
    model = body.get("model")
    stream = body.get("stream") is True
    if model == "bench-call":
        return _call_steps(body, stream=stream)
    return _text_steps(model, stream=stream) if isinstance(model, str) else None


def deltas_of_model(model: str) -> int | None:
    """How many text deltas a streamed answer of this model has, or None."""
    named = _TEXT_MODEL.fullmatch(model)
    return int(named.group(1)) if named else None


def _text_steps(model: str, *, stream: bool) -> Sequence[Step] | None:
    canned = _canned_text(model, stream=stream)
    return None if canned is None else _with_new_ids(canned)


@dataclass(frozen=True, slots=True)
class _Canned:
    """An encoded answer, and the ids in it, which are all of one length."""

    steps: tuple[Step, ...]
    ids: frozenset[bytes]


@lru_cache(maxsize=64)
def _canned_text(model: str, *, stream: bool) -> _Canned | None:
    named = _TEXT_MODEL.fullmatch(model)
    if named is None or not 0 < int(named.group(1)) <= MAX_DELTAS:
        return None
    deltas = [f"word{place} " for place in range(int(named.group(1)))]
    reply = text("".join(deltas), deltas=deltas)
    if stream and named.group(2):
        reply = paced(1 / int(named.group(2)), reply)
    steps = tuple(steps_of(reply, {"model": model, "stream": stream, "input": ""}, "vllm"))
    return _Canned(steps, frozenset(found for step in steps if isinstance(step, bytes) for found in _ID.findall(step)))


def _with_new_ids(canned: _Canned) -> list[Step]:
    steps = list(canned.steps)
    for known in canned.ids:
        fresh = new_id().encode()
        steps = [step.replace(known, fresh) if isinstance(step, bytes) else step for step in steps]
    return steps


def _call_steps(body: Json, *, stream: bool) -> Sequence[Step]:
    given = body.get("input")
    last = given[-1] if isinstance(given, list) and given else {}
    tools = body.get("tools") or []
    if not tools or last.get("type") == "function_call_output":
        return _text_steps("bench-8", stream=stream) or ()
    return steps_of(function_calls(call(tools[0]["name"], {"city": "Paris"})), body, "vllm")
