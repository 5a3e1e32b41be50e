"""llama.cpp's server.

It numbers nothing, names calls by their `call_id` alone, and ends all items together at the end of the stream. All of
that is the base reader's and the accumulator's ordinary tolerance.
"""

from __future__ import annotations

from attache_core.events.dialects.base import Dialect


class LlamaCppDialect(Dialect):
    """Nothing to forgive that is not forgiven of every server."""
