"""What only one tool of a turn may have, wherever the tools of a turn come from. Pure."""

from __future__ import annotations

from attache_core.json_codec import Json

Claim = tuple[str, str]


def claim_of(tool: Json) -> Claim:
    """Of a declaration of valid shape: its type and its name; a function and a custom tool cannot have the same name.

    Types without names may have any JSON in that place, which means nothing.
    """
    kind, name = tool["type"], tool.get("name")
    return "called by name" if kind in ("function", "custom") else kind, name if isinstance(name, str) else ""
