"""How many tokens something is to a model, about: there is no tokenizer here, and every model has its own.

Counted are the bytes of the JSON, of which a token takes four or so in English text and in code; an image or a file
counts for a fixed number, because its bytes say nothing.
"""

from __future__ import annotations

from attache_core.json_codec import Json, encode

MEDIA_TOKENS = 1000
"""What an image or a file counts for."""

_MEDIA = frozenset({"input_image", "input_file", "computer_screenshot"})


def text_tokens(value: object, bytes_per_token: float) -> int:
    """Of what is all text, as JSON; nothing at all is none."""
    return int(len(encode(value)) / bytes_per_token) if value else 0


def item_tokens(item: Json, bytes_per_token: float) -> int:
    """Of an item of `input`."""
    media = 0
    for name in ("content", "output"):
        parts = item.get(name)
        if isinstance(parts, list):
            text = [part for part in parts if not (isinstance(part, dict) and part.get("type") in _MEDIA)]
            media += len(parts) - len(text)
            item = {**item, name: text}
    return text_tokens(item, bytes_per_token) + media * MEDIA_TOKENS
