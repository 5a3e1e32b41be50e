"""Valid create requests to be damaged: the recorded ones, and one that uses every corner of the API."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import yaml

from attache_core.json_codec import Json, encode
from core.events.recordings import CASSETTES

LARGEST_BYTES = 12_000
"""Longer recordings only repeat themselves."""

FUNCTION: Json = {
    "type": "function",
    "name": "get_forecast",
    "description": "The forecast for a city",
    "strict": True,
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "additionalProperties": False},
}

WHOLE: Json = {
    "model": "m",
    "instructions": "Be brief.",
    "input": [
        {"role": "developer", "content": "Speak Norwegian."},
        {
            "type": "message",
            "role": "user",
            "content": [
                {"type": "input_text", "text": "What is this?"},
                {"type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "low"},
            ],
        },
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm."}]},
        {"type": "function_call", "call_id": "call_1", "name": "get_forecast", "arguments": '{"city": "Oslo"}'},
        {"type": "function_call_output", "call_id": "call_1", "output": "snow"},
        {
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "content": [
                {"type": "output_text", "text": "It snows.", "annotations": []},
                {"type": "refusal", "refusal": "No more."},
            ],
        },
        {"role": "user", "content": "And tomorrow?"},
    ],
    "tools": [FUNCTION],
    "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "get_forecast"}]},
    "parallel_tool_calls": False,
    "metadata": {"trace": "1"},
    "temperature": 0.5,
    "top_p": 0.9,
    "max_output_tokens": 99,
    "max_tool_calls": 3,
    "text": {"format": {"type": "json_schema", "name": "answer", "schema": {"type": "object"}, "strict": True}},
    "reasoning": {"effort": "low", "summary": "auto"},
    "include": ["reasoning.encrypted_content", "message.output_text.logprobs"],
    "stream_options": {"include_obfuscation": False},
    "store": True,
    "truncation": "disabled",
    "service_tier": "auto",
    "top_logprobs": 2,
    "safety_identifier": "user-1",
    "prompt_cache_key": "k",
    "seed": 3,
    "chat_template_kwargs": {"enable_thinking": False},
}


def recorded_requests() -> Sequence[Json]:
    """The bodies of all recorded create requests, without what leads to another server or to another turn."""
    bodies: dict[bytes, Json] = {}
    for path in sorted(CASSETTES.glob("*/*.yaml")):
        document = yaml.load(path.read_bytes(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        for turn in document.get("turns") or [document]:
            body: Any = turn["request"].get("body") if "method" in turn.get("request", {}) else None
            if body:
                body.pop("previous_response_id", None)
                text = encode(body)
                if len(text) <= LARGEST_BYTES and b"http" not in text:
                    bodies[text] = body
    return list(bodies.values())
