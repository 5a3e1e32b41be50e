"""The same question asked streamed and plain of the same server: items of the same shape, whatever was said in them."""

from __future__ import annotations

from typing import Any

import pytest

from attache_core.events.dialects import dialect_for
from attache_core.json_codec import Json
from core.events.pipeline import accumulated, new_accumulator, read_stream
from core.events.recordings import Recorded, recorded

PAIRS = [
    ("text/resp-single-gpt-4o-{}.yaml", 0),
    ("stateful/resp-two-turn-gpt-4o-{}.yaml", 1),
    ("reasoning/reasoning-single-Qwen-Qwen3-30B-A3B-FP8-{}.yaml", 0),
    ("reasoning/reasoning-single-openai-gpt-oss-20b-{}.yaml", 0),
    ("function_tools/tool-call-required-Qwen-Qwen3-30B-A3B-FP8-{}.yaml", 0),
    ("llama_cpp/text-gemma3-270m-{}.yaml", 0),
    ("llama_cpp/function-tool-required-gemma3-270m-{}.yaml", 0),
    ("llama_cpp/tool-output-history-gemma3-270m-{}.yaml", 0),
    ("sglang/sglang-tool-call-auto-Qwen-Qwen3-8B-{}.yaml", 0),
    ("sglang/sglang-stateful-Qwen-Qwen3-8B-{}.yaml", 0),
]


def shape(value: Any) -> Any:
    """A value with every scalar replaced by its type; types, roles and statuses stay."""
    if isinstance(value, dict):
        return {
            name: inner if name in ("type", "role", "status", "name") else shape(inner) for name, inner in value.items()
        }
    return [shape(inner) for inner in value] if isinstance(value, list) else type(value).__name__


def items_of(answer: Recorded) -> list[Json]:
    accumulator = new_accumulator()
    said = (
        dialect_for("auto").read_response(answer.body)
        if answer.body is not None
        else read_stream([answer.stream or b""])
    )
    accumulated(said, accumulator)
    return [item for _, item in accumulator.items]


@pytest.mark.parametrize(("name", "turn"), PAIRS)
def test_streamed_and_plain_recording_give_items_of_the_same_shape(name: str, turn: int) -> None:
    streamed, plain = (items_of(recorded(name.format(form))[turn]) for form in ("streaming", "nonstreaming"))
    assert shape(streamed) == shape(plain)


def test_incomplete_recordings_of_openai_give_items_of_the_same_shape() -> None:
    names = (
        "incomplete/text-max_output_tokens-incomplete-stream.yaml",
        "incomplete/text-max_output_tokens-incomplete.yaml",
    )
    streamed, plain = (items_of(recorded(name)[0]) for name in names)
    assert shape(streamed) == shape(plain)
