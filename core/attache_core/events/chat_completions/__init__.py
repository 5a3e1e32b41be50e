"""What a server says over the Chat Completions API, read as the events of the Responses API."""

from __future__ import annotations

from attache_core.events.chat_completions.reader import ChatCompletionsReader

__all__ = ["ChatCompletionsReader"]
