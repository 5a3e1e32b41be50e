"""OpenAI's own API, and servers that keep to it."""

from __future__ import annotations

from attache_core.events.dialects.base import Dialect


class OpenAIDialect(Dialect):
    """Nothing to forgive, and nothing held back: the events are the API's. Ids are dropped all the same; they are this
    gateway's to give."""
