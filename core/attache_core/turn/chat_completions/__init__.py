"""A turn as a request of the Chat Completions API."""

from __future__ import annotations

from attache_core.turn.chat_completions.options import (
    DEFAULT_REASONING_FIELDS,
    ChatRequestOptions,
    LateSystemRole,
    MaxTokensField,
    ReasoningField,
)
from attache_core.turn.chat_completions.request import chat_request

__all__ = [
    "DEFAULT_REASONING_FIELDS",
    "ChatRequestOptions",
    "LateSystemRole",
    "MaxTokensField",
    "ReasoningField",
    "chat_request",
]
