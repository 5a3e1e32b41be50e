"""Canned answers for benchmarks: encoded once, served as bytes.

The model's name says what to answer: `bench-200` is a text of 200 deltas at full speed, `bench-200@50` one that has 50
events a second, and whose deltas say when they were sent; `bench-call` a call of the first function tool with the
argument `{"city": "Paris"}` and, once the call has its output, a short text. Every answer has ids of its own: there are
gateways that store what was said under them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from attache_core.json_codec import Json
from attache_core.testing.model_play import Beat, Step, steps_of
from attache_core.testing.model_script import call, function_calls, paced, text
from attache_core.testing.model_stamps import SENT_AT
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
    """An encoded answer, the ids in it, which are all of one length, and its events a second (0: at full speed)."""

    steps: tuple[Step, ...]
    ids: frozenset[bytes]
    per_s: int


@lru_cache(maxsize=64)
def _canned_text(model: str, *, stream: bool) -> _Canned | None:
    named = _TEXT_MODEL.fullmatch(model)
    if named is None or not 0 < int(named.group(1)) <= MAX_DELTAS:
        return None
    count = int(named.group(1))
    per_s = int(named.group(2) or 0) if stream else 0
    deltas = [f"{SENT_AT} "] * count if per_s else [f"word{place} " for place in range(count)]
    reply = paced(1 / per_s if per_s else 0.0, text("".join(deltas), deltas=deltas))
    steps = tuple(steps_of(reply, {"model": model, "stream": stream, "input": ""}, "vllm"))
    ids = frozenset(found for step in steps if isinstance(step, bytes) for found in _ID.findall(step))
    return _Canned(steps, ids, per_s)


def _with_new_ids(canned: _Canned) -> list[Step]:
    steps = [step for step in canned.steps if isinstance(step, bytes)]
    for known in canned.ids:
        fresh = new_id().encode()
        steps = [step.replace(known, fresh) for step in steps]
    return [Beat(1 / canned.per_s, tuple(steps))] if canned.per_s else [*steps]


def _call_steps(body: Json, *, stream: bool) -> Sequence[Step]:
    given = body.get("input")
    last = given[-1] if isinstance(given, list) and given else {}
    tools = body.get("tools") or []
    if not tools or last.get("type") == "function_call_output":
        return _text_steps("bench-8", stream=stream) or ()
    return steps_of(function_calls(call(tools[0]["name"], {"city": "Paris"})), body, "vllm")
