"""Serves segments to Envoy, over the transport that is asked for: one `SegmentHost` for each ext_proc stream.

Each transport is imported only where it serves.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass

from attache_filters.extproc.segment import Segment
from attache_filters.extproc.transport.choice import Transport, default_transport

DEFAULT_GRACE_S = 30.0
"""How long exchanges under way may take to end once the server is to stop; then they are cancelled."""


@dataclass(frozen=True, slots=True)
class RunningServer:
    """A server that accepts streams. `address` is what Envoy connects to; a port of 0 was replaced by the real one."""

    address: str


@asynccontextmanager
async def running_server(
    address: str,
    segments: Mapping[str, Segment],
    *,
    transport: Transport | None = None,
    grace_s: float = DEFAULT_GRACE_S,
) -> AsyncIterator[RunningServer]:
    """Serve `segments`, by name, until the block ends.

    At the end the health service says NOT_SERVING, no stream is accepted any more, and those under way may take
    `grace_s` seconds.

    Args:
        address: `unix:/path`, or `host:port`.
        transport: None is the default one for the address.

    Raises:
        OSError: the address cannot be used.
    """
    async with _serving(transport or default_transport(address), address, segments, grace_s) as bound:
        yield RunningServer(bound)


def _serving(
    transport: Transport, address: str, segments: Mapping[str, Segment], grace_s: float
) -> AbstractAsyncContextManager[str]:
    if transport == "grpcio":
        from attache_filters.extproc.transport.grpcio import serving_grpcio  # noqa: PLC0415

        return serving_grpcio(address, segments, grace_s)
    from attache_filters.extproc.transport.lean.server import serving_lean  # noqa: PLC0415

    return serving_lean(address, segments, grace_s)
