"""The one RPC that we serve, as every transport serves it: which segment a stream is for, and what its end says.

The segment of a stream is named by its invocation metadata, so that one address serves every ext_proc filter of a
gateway. Unaware of how messages travel. Invariant: an exchange that cannot go on ends alone.
"""

from __future__ import annotations

from collections.abc import Mapping

import structlog

from attache_filters.extproc.host import MessageStream, SegmentHost
from attache_filters.extproc.segment import Segment
from attache_filters.extproc.transport.rpc import RpcError, StatusCode

SERVICE = "envoy.service.ext_proc.v3.ExternalProcessor"
METHOD = "Process"

log = structlog.get_logger()


async def serve_exchange(segments: Mapping[str, Segment], name: str, stream: MessageStream) -> None:
    """Serve one stream for the segment `name` until Envoy ends it.

    Raises:
        RpcError: there is no such segment, or the exchange was broken off, which is logged.
    """
    segment = segments.get(name)
    if segment is None:
        log.error("a stream for an unknown segment", segment=name, known=sorted(segments))
        raise RpcError(StatusCode.UNIMPLEMENTED, f"There is no segment {name!r}.")
    try:
        await SegmentHost(segment, stream).run()
    except Exception as error:
        # The edge: whatever went wrong, other streams go on.
        log.exception("an exchange was broken off", segment=segment.name)
        raise RpcError(StatusCode.INTERNAL, "The exchange was broken off.") from error
