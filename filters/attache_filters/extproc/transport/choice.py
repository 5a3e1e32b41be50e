"""Which transports there are, and which one serves where nobody chose."""

from __future__ import annotations

from typing import Literal

Transport = Literal["lean", "grpcio"]


def default_transport(address: str) -> Transport:
    """`lean` on a Unix socket, where nobody but the Envoy beside it connects; grpcio on a port."""
    return "lean" if address.startswith("unix:") else "grpcio"
