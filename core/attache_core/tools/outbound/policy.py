"""The outbound policy: whether a URL that a client, a model or a server gave may be followed, and to which addresses.

Such a URL is followed from inside the operator's network. So its host is resolved once, every address that comes back
is judged, and the connection is made to one of these very addresses (`pinned`): a name cannot resolve to something else
the second time, and no spelling of an address (octal, hexadecimal, full-width, IPv4 inside IPv6) slips through, because
it is the resolver's answer that is judged and not the text. Refusals name the setting that would allow it, and repeat
nothing of the URL, whose path or query may be a credential.
"""

from __future__ import annotations

from dataclasses import dataclass

import httpx2

from attache_core.errors import ToolError
from attache_core.tools.outbound.addresses import is_public
from attache_core.tools.outbound.hosts import is_admitted, plain_host
from attache_core.tools.outbound.resolver import addresses_of
from attache_core.tools.outbound.settings import OutboundSettings

MAX_ADDRESSES = 16
"""Of a name with more addresses all are judged, and the first ones connected to."""

_DEFAULT_PORTS = {"http": 80, "https": 443}

Origin = tuple[str, str, int]
"""Scheme, host and port: what credentials are bound to (RFC 6454)."""


class OutboundError(ToolError):
    """A URL led to nothing.

    Attributes:
        reason: the same as `message`, as a part of a sentence.
    """

    def __init__(self, message: str, reason: str) -> None:
        super().__init__(message)
        self.reason = reason


class UrlRefusedError(OutboundError):
    """The policy forbids to follow it. `reason` continues "it is refused:"."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"The URL is refused: {reason}.", reason)


class UnknownHostError(OutboundError):
    """It leads to no address. `reason` continues "its host name"."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"The URL's host name {reason}.", reason)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where to connect.

    Attributes:
        host: as the URL has it, in ASCII; for the `Host` header and for TLS.
        addresses: numeric; at least one, in the resolver's order.
    """

    scheme: str
    host: str
    port: int
    addresses: tuple[str, ...]

    @property
    def origin(self) -> Origin:
        """Whom it is a connection to."""
        return self.scheme, self.host, self.port


@dataclass(frozen=True, slots=True)
class OutboundPolicy:
    """The policy of one section of the gateway file.

    Attributes:
        section: its name there, for refusals.
        login: where a client puts what it wanted to put before the host, if there is such a place.
    """

    section: str
    settings: OutboundSettings
    login: str | None = None

    async def resolve(self, url: str) -> Endpoint:
        """Judge a URL and resolve it. No time limit but the caller's.

        Raises:
            UrlRefusedError: it is no http or https URL, holds credentials, or the settings do not admit its scheme,
                its host or one of its addresses.
            UnknownHostError: its host has no address.
        """
        scheme, host, port = self._judged(url)
        addresses = await _lookup(host, port)
        if not (self.settings.allow_private_addresses or all(map(is_public, addresses))):
            setting = f"{self.section}.allow_private_addresses"
            raise UrlRefusedError(
                f"its host has an address that is not public; the gateway's setting {setting} would allow it"
            )
        return Endpoint(scheme, host, port, addresses[:MAX_ADDRESSES])

    def _judged(self, url: str) -> Origin:
        scheme, host, port = self._origin(url)
        if scheme not in self.settings.allowed_schemes:
            raise UrlRefusedError(f"its scheme is not in the gateway's setting {self.section}.allowed_schemes")
        try:
            plain = plain_host(host)
        except ValueError:
            raise UrlRefusedError("its host is neither a host name nor an address") from None
        if self.settings.allowed_hosts and not is_admitted(plain, self.settings.allowed_hosts):
            raise UrlRefusedError(f"its host is not in the gateway's setting {self.section}.allowed_hosts")
        return scheme, host, port

    def _origin(self, url: str) -> Origin:
        try:
            parsed = httpx2.URL(url)
            scheme, host, port = origin_of(parsed)
        except (httpx2.InvalidURL, UnicodeError, ValueError, TypeError):
            raise UrlRefusedError("it is not a valid URL") from None
        if scheme not in _DEFAULT_PORTS or not host:
            raise UrlRefusedError("it must be an absolute http or https URL")
        if not 0 < port < 65536:
            raise UrlRefusedError("its port must be between 1 and 65535")
        if parsed.userinfo:
            use = f"; use {self.login}" if self.login else ""
            raise UrlRefusedError(f"it must not contain a user name or password{use}")
        return scheme, host, port


def origin_of(url: httpx2.URL) -> Origin:
    """The origin of a URL, the scheme's port filled in; what it lacks is empty or 0."""
    port = url.port if url.port is not None else _DEFAULT_PORTS.get(url.scheme, 0)
    return url.scheme, url.raw_host.decode("ascii"), port


async def _lookup(host: str, port: int) -> tuple[str, ...]:
    try:
        addresses = await addresses_of(host, port)
    except (OSError, UnicodeError, OverflowError):
        raise UnknownHostError("cannot be resolved") from None
    if not addresses:
        raise UnknownHostError("has no address")
    return addresses
