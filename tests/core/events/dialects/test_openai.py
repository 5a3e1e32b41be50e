"""OpenAI's own API as an inference server: nothing to forgive.

| what it does | test |
| --- | --- |
| every delta is part of its text, so none is held back | `…every_delta_is_shown_at_once` |
| no `[DONE]`, numbers without gaps, ids that agree | `test_recordings.py` |
| a stream that fails has `error` and then `response.failed` | `test_outcomes.py` |
"""

from __future__ import annotations

from attache_core.events.dialects import dialect_for
from attache_core.events.model_events import Delta
from core.events.dialects.payloads import CREATED, call_stream
from core.events.pipeline import read_payloads


def test_every_delta_is_shown_at_once() -> None:
    payloads = [CREATED, *call_stream("{}", done="{}")[:2]]
    assert read_payloads(payloads, dialect_for("openai"))[-1] == Delta("item_0", None, "arguments", "{}")
    assert not isinstance(read_payloads(payloads, dialect_for("vllm"))[-1], Delta), "there it may be bogus"
