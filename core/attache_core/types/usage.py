"""Token usage: whatever an inference server reports, as the whole object that clients rely on.

Knows the API's `usage` object; is unaware of rounds (whoever runs several adds their usage up). Invariant: every count
of a usage object that leaves here is a non-negative integer, and no count is missing (API reference, "usage").
"""

from __future__ import annotations

from collections.abc import Mapping

from attache_core.json_codec import Json


def full_usage(usage: Json | None) -> Json | None:
    """The usage object with every count of the API and nothing else; None when nothing was reported.

    A count that is missing, null or no count is 0; a missing total is the sum of input and output.
    """
    if not isinstance(usage, Mapping):
        return None
    input_tokens, output_tokens = _count(usage, "input_tokens"), _count(usage, "output_tokens")
    return {
        "input_tokens": input_tokens,
        "input_tokens_details": _details(usage, "input_tokens_details", ("cache_write_tokens", "cached_tokens")),
        "output_tokens": output_tokens,
        "output_tokens_details": _details(usage, "output_tokens_details", ("reasoning_tokens",)),
        "total_tokens": _count(usage, "total_tokens") or input_tokens + output_tokens,
    }


def add_usage(first: Json | None, second: Json | None) -> Json | None:
    """The sum of two usage objects, whole. One that was not reported (None) adds nothing; two of them stay None."""
    left, right = full_usage(first), full_usage(second)
    if left is None or right is None:
        return left if right is None else right
    return _sum(left, right)


def _sum(left: Json, right: Json) -> Json:
    return {
        name: _sum(value, right[name]) if isinstance(value, dict) else value + right[name]
        for name, value in left.items()
    }


def _details(usage: Mapping[str, object], name: str, counts: tuple[str, ...]) -> Json:
    given = usage.get(name)
    details: Mapping[str, object] = given if isinstance(given, Mapping) else {}
    return {count: _count(details, count) for count in counts}


def _count(fields: Mapping[str, object], name: str) -> int:
    value = fields.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
