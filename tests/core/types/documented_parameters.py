"""The table of docs/parameters.md as data, and a value of each parameter to try it with."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

DOCUMENT = Path(__file__).parents[3] / "docs" / "parameters.md"

_ROW = re.compile(r"^\| `([a-z_]+)` \| (here|sent|here and sent|refused) \| .*\|$", re.MULTILINE)

FATE: dict[str, str] = dict(_ROW.findall(DOCUMENT.read_text()))
"""What becomes of each parameter: `here`, `sent`, `here and sent` or `refused`."""

SAMPLES: dict[str, Any] = {
    "access_programs": {"cyber": "standard"},
    "background": True,
    "background_options": {"completion_window": "soonest"},
    "context_management": [{"type": "compaction", "compact_threshold": 1000}],
    "conversation": {"id": "conv_1"},
    "frequency_penalty": 0.5,
    "image": {"context_compression": "disabled"},
    "include": ["reasoning.encrypted_content"],
    "input": [{"role": "user", "content": "Hi"}],
    "instructions": "Be brief.",
    "max_output_tokens": 64,
    "max_tool_calls": 3,
    "metadata": {"topic": "demo"},
    "model": "some-model",
    "moderation": {"model": "omni-moderation-latest"},
    "parallel_tool_calls": False,
    "presence_penalty": -0.5,
    "previous_response_id": "resp_1",
    "prompt": {"id": "pmpt_1"},
    "prompt_cache_key": "k",
    "prompt_cache_options": {"mode": "explicit", "ttl": "12h"},
    "prompt_cache_retention": "24h",
    "reasoning": {"effort": "low", "summary": "auto", "context": "all_turns"},
    "safety_identifier": "s",
    "service_tier": "flex",
    "store": True,
    "stream": True,
    "stream_options": {"include_obfuscation": False},
    "temperature": 0,
    "text": {"format": {"type": "json_schema", "name": "n", "schema": {"type": "object"}}, "verbosity": "low"},
    "tool_choice": {"type": "function", "name": "f"},
    "tools": [{"type": "function", "name": "f", "parameters": None, "strict": False}],
    "top_logprobs": 2,
    "top_p": 0.5,
    "truncation": "disabled",
    "user": "u",
}
"""A value that asks for something, for every parameter in the table."""

UNKNOWN: dict[str, Any] = {
    "seed": 7,
    "top_k": 20,
    "chat_template_kwargs": {"enable_thinking": False},
    "of_tomorrow": [{"a": None}, 10**30],
}
"""Parameters that only an inference server knows."""


def sent_parameters() -> dict[str, Any]:
    """The samples that reach an inference server unchanged."""
    return {name: value for name, value in SAMPLES.items() if FATE[name] in ("sent", "here and sent")}
