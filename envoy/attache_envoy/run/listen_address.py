"""The gateway's listen address: whether it is free, and how a client on this machine writes it."""

from __future__ import annotations

import ipaddress
import os
import socket

from attache_core.errors import ConfigError
from attache_envoy.gateway.model import Address


def ensure_free(address: Address) -> None:
    """Refuse an address that is in use, or not ours.

    Envoy would find out too, but only after the workers have started, and deep in its own log.

    Raises:
        ConfigError: it cannot be listened on.
    """
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(tuple(address))
            probe.listen()
    except OSError as error:
        where = f"{address.host}:{address.port}"
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise ConfigError(
            f"Cannot listen on {where}: {reason}. Choose another `listen` (--listen HOST:PORT)."
        ) from error


def url_of(host: str, port: int) -> str:
    """`http://HOST:PORT` for a client on this machine: a loopback address when the gateway listens on all.

    Args:
        host: an IP address, an IPv6 one without brackets.
    """
    address = ipaddress.ip_address(host)
    if address.is_unspecified:
        address = ipaddress.ip_address("127.0.0.1" if address.version == 4 else "::1")
    return f"http://[{address}]:{port}" if address.version == 6 else f"http://{address}:{port}"
