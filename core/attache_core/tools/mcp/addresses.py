"""Which servers a client may make the gateway connect to.

A server URL comes from a client and is followed from inside the operator's network. So its host is resolved once, every
address that comes back is judged, and the connection is made to one of these very addresses: a name cannot resolve to
something else the second time, and no spelling of an address (octal, hexadecimal, full-width, IPv4 inside IPv6) slips
through, because it is the resolver's answer that is judged and not the text.
"""

from __future__ import annotations

import asyncio
import socket
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address

import httpx2

from attache_core.tools.mcp.failure import McpServerError, unreachable

_SETTING = "mcp.allow_private_addresses"
_DEFAULT_PORTS = {"http": 80, "https": 443}
_PUBLIC_IPV6 = IPv6Network("2000::/3")
_IPV4_INSIDE = (IPv6Network("2001::/23"), IPv6Network("2002::/16"))
"""Teredo (with other protocols' assignments) and 6to4: they lead to an IPv4 address. NAT64 and mapped ones begin below
2000::/3."""

_NEVER_PUBLIC = (
    IPv4Network("168.63.129.16/32"),  # tells every Azure machine what only that machine may know
    IPv4Network("192.0.0.0/24"),  # IETF protocol assignments; metadata of some clouds
    IPv4Network("192.88.99.0/24"),  # 6to4 relays
)
"""What the registries, or some versions of `ipaddress`, take for public."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where to connect.

    Attributes:
        host: as the URL has it, in ASCII; for the `Host` header and for TLS.
        addresses: numeric; at least one, in the resolver's order.
    """

    host: str
    port: int
    addresses: tuple[str, ...]


async def resolve(url: str, *, allow_private: bool) -> Endpoint:
    """Judge a server URL and resolve it.

    Raises:
        McpServerError: it is no http or https URL, holds credentials, has no address, or, unless `allow_private`, one
            of its addresses is not public.
    """
    host, port = _host_and_port(url)
    addresses = await _lookup(host, port)
    if not allow_private and not all(is_public(address) for address in addresses):
        raise _refused(f"its host has an address that is not public; the gateway's setting {_SETTING} would allow it")
    return Endpoint(host, port, addresses)


def is_public(address: str) -> bool:
    """Whether a numeric address belongs to the public internet (IANA special-purpose address registries)."""
    ip = ip_address(address)
    if isinstance(ip, IPv6Address):
        reachable = ip in _PUBLIC_IPV6 and not any(ip in network for network in _IPV4_INSIDE)
    else:
        reachable = not any(ip in network for network in _NEVER_PUBLIC)
    return reachable and ip.is_global and not ip.is_multicast and not ip.is_reserved


def _host_and_port(url: str) -> tuple[str, int]:
    try:
        parsed = httpx2.URL(url)
        host, port = parsed.raw_host.decode("ascii"), parsed.port
    except (httpx2.InvalidURL, UnicodeError, ValueError, TypeError):
        raise _refused("it is not a valid URL") from None
    if parsed.scheme not in _DEFAULT_PORTS or not host:
        raise _refused("it must be an absolute http or https URL")
    if port is not None and not 0 < port < 65536:
        raise _refused("its port must be between 1 and 65535")
    if parsed.userinfo:
        raise _refused("it must not contain a user name or password; use `authorization` or `headers`")
    return host, port if port is not None else _DEFAULT_PORTS[parsed.scheme]


async def _lookup(host: str, port: int) -> tuple[str, ...]:
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError, OverflowError):
        raise McpServerError(unreachable("The MCP server's host name cannot be resolved.")) from None
    addresses = tuple(dict.fromkeys(str(info[4][0]) for info in found))
    if not addresses:
        raise McpServerError(unreachable("The MCP server's host name has no address."))
    return addresses


def _refused(reason: str) -> McpServerError:
    return McpServerError(unreachable(f"The MCP server's URL is refused: {reason}."))
