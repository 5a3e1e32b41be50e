"""An inference server as the gateway file names it."""

from __future__ import annotations

import ipaddress
from urllib.parse import SplitResult, urlsplit

from pydantic import Field, field_validator

from attache_envoy.gateway.section import Section


class Upstream(Section):
    """One inference server, or a load balancer in front of several."""

    url: str
    """Base URL, `http://` or `https://`. A trailing `/v1` means the same as none; any other path is kept as a prefix:
    with `https://host/openai`, requests for `/v1/responses` go to `/openai/v1/responses`."""

    connect_timeout_s: float = Field(default=5.0, gt=0, le=300)
    """How long to wait for a connection, in seconds."""

    keepalive_s: float = Field(default=4.0, gt=0, le=3600)
    """How long an idle connection is kept for reuse, in seconds. Stay below the server's own limit (5 s for uvicorn,
    which serves vLLM), or a request may meet a connection that is being closed."""

    max_requests: int = Field(default=65_536, ge=1, le=2**31)
    """How many requests may be under way or waiting at once; more are answered with 503."""

    @field_validator("url")
    @classmethod
    def _check_url(cls, url: str) -> str:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{url!r} is not a base URL such as http://127.0.0.1:8000.")
        try:
            port = parts.port
        except ValueError:
            port = 0
        if port == 0:
            raise ValueError(f"{url!r}: a port is a number from 1 to 65535.")
        if parts.username is not None or parts.password is not None:
            raise ValueError("credentials do not belong in a URL: clients send them in the authorization header.")
        if parts.query or parts.fragment:
            raise ValueError(f"{url!r} must not have a query string or a fragment.")
        return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/').removesuffix('/v1').rstrip('/')}"

    @property
    def _parts(self) -> SplitResult:
        return urlsplit(self.url)

    @property
    def host(self) -> str:
        """Host name or address, an IPv6 address without brackets."""
        return str(self._parts.hostname)

    @property
    def port(self) -> int:
        """The port, the scheme's default included."""
        return self._parts.port or (443 if self.tls else 80)

    @property
    def tls(self) -> bool:
        """Whether the connection is encrypted."""
        return self._parts.scheme == "https"

    @property
    def authority(self) -> str:
        """The `host` header: host, and the port where it is not the scheme's default."""
        return self._parts.netloc

    @property
    def prefix(self) -> str:
        """What stands before `/v1`: empty, or `/…` without a slash at its end."""
        return self._parts.path

    @property
    def is_ip_address(self) -> bool:
        """Whether `host` needs no name service."""
        try:
            ipaddress.ip_address(self.host)
        except ValueError:
            return False
        return True
