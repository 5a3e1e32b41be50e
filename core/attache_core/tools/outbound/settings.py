"""Where the gateway may connect to for a URL that it did not choose itself: the keys that every such section has."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from attache_core.tools.outbound.hosts import host_pattern

Scheme = Literal["http", "https"]
HostPattern = Annotated[str, AfterValidator(host_pattern)]


class OutboundSettings(BaseModel):
    """Which URLs are followed; see `OutboundPolicy`."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    allowed_schemes: tuple[Scheme, ...] = Field(default=("http", "https"), min_length=1)
    """Schemes that URLs may have."""

    allowed_hosts: tuple[HostPattern, ...] = ()
    """Hosts that URLs may lead to, such as `mcp.example.com` or `*.example.com` (every name below it); none means all.
    An allowed host must have public addresses all the same."""

    allow_private_addresses: bool = False
    """Whether URLs may lead to loopback, private, link-local or other addresses that are not public."""
