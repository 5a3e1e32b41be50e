"""A turn as a request of the Chat Completions API."""

from __future__ import annotations

from attache_core.turn.chat_completions.messages import ReasoningField
from attache_core.turn.chat_completions.request import (
    DEFAULT_REASONING_FIELDS,
    ChatRequestOptions,
    MaxTokensField,
    chat_request,
)
from attache_core.turn.chat_completions.tools import custom_tool_names

__all__ = [
    "DEFAULT_REASONING_FIELDS",
    "ChatRequestOptions",
    "MaxTokensField",
    "ReasoningField",
    "chat_request",
    "custom_tool_names",
]
