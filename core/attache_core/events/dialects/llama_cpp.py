"""llama.cpp's server.

It numbers nothing, names calls by their `call_id` alone, ends all items together at the end of the stream, and has an
error type of its own. All but the last are the base reader's and the accumulator's ordinary tolerance.
"""

from __future__ import annotations

from collections.abc import Mapping

from attache_core.errors import AttacheError
from attache_core.events.dialects.base import Dialect

CONTEXT_TYPE = "exceed_context_size_error"
"""Its error type for what the API's code `context_length_exceeded` says."""


class LlamaCppDialect(Dialect):
    """Says an over-long input in the API's words: clients compact their history on that code."""

    def error(self, status: int, headers: Mapping[str, str], body: bytes) -> AttacheError:
        """See `Dialect.error`."""
        error = super().error(status, headers, body)
        if error.type == CONTEXT_TYPE:
            error.type, error.code, error.param = "invalid_request_error", "context_length_exceeded", "input"
        return error
