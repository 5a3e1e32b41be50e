"""An MCP server that the gateway file names: `mcp.servers.LABEL`, which requests declare by its label alone.

Where it is and how to authenticate there are the operator's, and secret: a URL's path or query may be a credential as
well. Invariant: nothing here prints, dumps or tells in an error what one of these values is.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from attache_core.tools.outbound.secret import ApiKey
from attache_core.types.mcp_tool import header_fault, is_http_url

Transport = Literal["auto", "streamable_http", "sse"]
"""How a server is spoken to; `auto` finds out."""


def _mapping(value: Any) -> Any:  # noqa: ANN401 - any input
    """Asked first because pydantic's own error would show the value."""
    if not isinstance(value, dict | BaseModel):
        raise ValueError("a mapping of keys to values is expected.")  # noqa: TRY004 - pydantic takes ValueErrors only
    return value


def _check_url(url: ApiKey) -> ApiKey:
    text = url.reveal()
    if not is_http_url(text) or "@" in urlsplit(text).netloc:
        raise ValueError("an absolute http or https URL without a login is expected; credentials have their own keys.")
    return url


def _check_names(headers: dict[str, ApiKey]) -> dict[str, ApiKey]:
    for name in headers:
        if fault := header_fault(name):
            raise ValueError(f"{fault}.")
    return headers


SecretUrl = Annotated[ApiKey, AfterValidator(_check_url)]
Headers = Annotated[dict[str, ApiKey], BeforeValidator(_mapping), AfterValidator(_check_names)]


class NamedServer(BaseModel):
    """One server. Its address need not be public, nor among the `allowed_hosts`: the operator wrote it."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    url: SecretUrl
    """Where it is. It is shown nowhere."""

    authorization: ApiKey | None = None
    """A bearer token for it, such as `${WEATHER_TOKEN}`."""

    headers: Headers = Field(default_factory=dict)
    """Further headers for it. Their values are secrets, too."""

    transport: Transport = "auto"
    """`streamable_http`, the older `sse`, or `auto`: the former, and the latter where the server has only that."""

    allowed_tools: tuple[str, ...] | None = None
    """The tools that requests may use; a request's own `allowed_tools` chooses among them. All, unless given."""

    description: str | None = None
    """What the model is told of the server where a request has no `server_description`."""


NamedServerSettings = Annotated[NamedServer, BeforeValidator(_mapping)]
