"""A segment: filters that share one ext_proc stream, and what their host needs to know of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from attache_filters.extproc.loop_client import LoopClient
from attache_filters.extproc.unattended import UnattendedTurns
from attache_filters.sdk.filter import Filter

DEFAULT_MAX_REQUEST_BYTES = 10 * 1024 * 1024
DEFAULT_MAX_REPLY_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Segment:
    """What one ext_proc filter of Envoy's chain runs.

    Attributes:
        name: how Envoy names it in the invocation metadata of its streams.
        filters: outermost first; at least one. They are open, and closed by whoever opened them.
        loop: the way to a listener whose chain is what stands below the segment, or None if there is none.
        max_request_bytes: a request body over this is answered 413, before and after decompression alike. It is the
            client's limit for the first segment of a chain; what the others get is a turn with its history.
        max_reply_bytes: how much of a response may be originated here; see `ReplyBudget`. Over it the turn fails.
        stream_through_loop: whether calls below that ask for an event stream take the loop listener, when there is
            one, even where the held request could go on. Envoy resets an exchange whose upstream dies after the
            response began, and asks no filter: only over the loop listener does the death of a streaming inference
            server arrive here, to become `response.failed`.
        unattended: where its exchanges go on whose clients went away; None where none of them ever does.
    """

    name: str
    filters: tuple[Filter[Any], ...]
    loop: LoopClient | None = None
    max_request_bytes: int = DEFAULT_MAX_REQUEST_BYTES
    max_reply_bytes: int = DEFAULT_MAX_REPLY_BYTES
    stream_through_loop: bool = True
    unattended: UnattendedTurns | None = None
