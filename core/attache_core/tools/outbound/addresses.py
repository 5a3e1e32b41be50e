"""Which numeric addresses belong to the public internet (IANA special-purpose address registries). Pure."""

from __future__ import annotations

from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address

_PUBLIC_IPV6 = IPv6Network("2000::/3")
_IPV4_INSIDE = (IPv6Network("2001::/23"), IPv6Network("2002::/16"))
"""Teredo (with other protocols' assignments) and 6to4: they lead to an IPv4 address. NAT64, mapped and compatible ones
begin below 2000::/3."""

_NEVER_PUBLIC = (
    IPv4Network("168.63.129.16/32"),  # tells every Azure machine what only that machine may know
    IPv4Network("192.0.0.0/24"),  # IETF protocol assignments; metadata of some clouds
    IPv4Network("192.88.99.0/24"),  # 6to4 relays
)
"""What the registries, or some versions of `ipaddress`, take for public."""


def is_public(address: str) -> bool:
    """Whether a numeric address is reachable by everybody, and so may be shown to anybody.

    Raises:
        ValueError: it is no numeric address.
    """
    ip = ip_address(address)
    if isinstance(ip, IPv6Address):
        reachable = ip in _PUBLIC_IPV6 and not any(ip in network for network in _IPV4_INSIDE)
    else:
        reachable = not any(ip in network for network in _NEVER_PUBLIC)
    return reachable and ip.is_global and not ip.is_multicast and not ip.is_reserved
