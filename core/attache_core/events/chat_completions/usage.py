"""Token usage of a chat completion as the usage of a response.

Source: API reference, "usage" of both; and where vLLM's relatives count elsewhere: DeepSeek has the cached tokens as
`prompt_cache_hit_tokens`, SGLang the reasoning tokens beside the others.
"""

from __future__ import annotations

from attache_core.json_codec import Json
from attache_core.types.usage import full_usage


def response_usage(usage: object) -> Json | None:
    """The whole usage object; None when nothing was reported."""
    if not isinstance(usage, dict):
        return None
    cached = _details(usage, "prompt_tokens_details").get("cached_tokens", usage.get("prompt_cache_hit_tokens"))
    thought = _details(usage, "completion_tokens_details").get("reasoning_tokens", usage.get("reasoning_tokens"))
    return full_usage(
        {
            "input_tokens": usage.get("prompt_tokens"),
            "input_tokens_details": {"cached_tokens": cached},
            "output_tokens": usage.get("completion_tokens"),
            "output_tokens_details": {"reasoning_tokens": thought},
            "total_tokens": usage.get("total_tokens"),
        }
    )


def _details(usage: Json, name: str) -> Json:
    given = usage.get(name)
    return given if isinstance(given, dict) else {}
