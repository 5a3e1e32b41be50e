"""An inference server as the gateway file names it."""

from __future__ import annotations

import ipaddress
from typing import Literal
from urllib.parse import SplitResult, urlsplit

from pydantic import Field, field_validator, model_validator

from attache_core.events.dialects import DialectName
from attache_core.tools.outbound.secret import ApiKey
from attache_envoy.gateway.models import ModelPattern
from attache_envoy.gateway.problems import custom_error, reject
from attache_envoy.gateway.section import Section

Api = Literal["responses", "chat_completions"]
"""What an inference server offers for turns."""


class Upstream(Section):
    """One inference server, or a load balancer in front of several."""

    url: str
    """Base URL, `http://` or `https://`. A trailing `/v1` means the same as none; any other path is kept as a prefix:
    with `https://host/openai`, requests for `/v1/responses` go to `/openai/v1/responses`."""

    api: Api = "responses"
    """`responses`: it answers `POST /v1/responses`. `chat_completions`: only `POST /v1/chat/completions`; chains ask it
    by the filter `chat_completions` where they say `upstream_round`."""

    models: tuple[ModelPattern, ...] = ()
    """The models that it has: names, or beginnings such as `qwen3-*`. Routes that name no upstream then choose one by
    the `model` of a request; an upstream without `models` takes all models that no other one has."""

    dialect: DialectName = "auto"
    """What its Responses API is like; `auto` recognises it from what it says. An `upstream_round` that names a dialect
    itself goes by its own."""

    api_key: ApiKey | None = None
    """A key of the gateway's own for it, sent as `authorization: Bearer KEY` in place of what a client sent."""

    headers_timeout_s: float = Field(default=600, gt=0, le=86_400)
    """How long a round of a chain waits for its answer to begin, in seconds: with one that is not streamed, as long as
    the model takes to make it. Then it fails with 504."""

    idle_timeout_s: float = Field(default=600, gt=0, le=86_400)
    """How long an answer that has begun may be silent before its next byte, in seconds. Many servers begin a streamed
    answer before they read the prompt: it must be longer than the longest wait for a model's first token."""

    connect_timeout_s: float = Field(default=5.0, gt=0, le=300)
    """How long to wait for a connection, in seconds."""

    keepalive_s: float = Field(default=4.0, gt=0, le=3600)
    """How long an idle connection is kept for reuse, in seconds. Stay below the server's own limit (5 s for uvicorn,
    which serves vLLM), or a request may meet a connection that is being closed."""

    max_requests: int = Field(default=65_536, ge=1, le=2**31)
    """How many requests may be under way at once, and how many may wait; more are answered with 503."""

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
            raise ValueError("credentials do not belong in a URL: give a key as `api_key`, or let clients send theirs.")
        if parts.query or parts.fragment:
            raise ValueError(f"{url!r} must not have a query string or a fragment.")
        return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/').removesuffix('/v1').rstrip('/')}"

    @model_validator(mode="after")
    def _check_dialect(self) -> Upstream:
        if self.api == "chat_completions" and self.dialect != "auto":
            message = "dialects are of the Responses API: leave it out with `api: chat_completions`."
            reject("upstream", [custom_error(message, ("dialect",))])
        return self

    @property
    def silence_s(self) -> float:
        """How long a round may be without a byte of its answer at all, whether the answer has begun or not."""
        return max(self.headers_timeout_s, self.idle_timeout_s)

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
