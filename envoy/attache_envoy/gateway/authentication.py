"""The section `authentication`: who may use the gateway, and whose state each of them sees.

Knows what an operator writes; Envoy checks the credentials (`compile.authentication`). Invariants: with the section,
every request but those for `/health` and `/ready` has a tenant that Envoy verified; no two tenants share a key; a key
is shown nowhere.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, field_validator, model_validator

from attache_core.secret import HIDDEN, SecretSetting
from attache_core.storage.row import is_key
from attache_envoy.gateway.problems import custom_error, reject
from attache_envoy.gateway.section import Section
from attache_envoy.gateway.upstream import Upstream

MIN_KEY_CHARS = 16
"""A shorter key could be guessed."""

_NO_KEY = "a key is a text such as ${ACME_KEY}, or {file: PATH} of a file that holds nothing else."


class ClientKey(SecretSetting):
    """A key by which a client shows whose it is."""

    __slots__ = ()

    @classmethod
    def check(cls, value: object) -> str:
        """See `SecretSetting.check`; `{"file": PATH}` stands for what is in the file, without white space around it."""
        text = _file_text(value["file"]) if isinstance(value, dict) and set(value) == {"file"} else value
        if not isinstance(text, str):
            raise ValueError(_NO_KEY)  # noqa: TRY004 - pydantic takes no other kind
        if not (text.isascii() and text.isprintable()) or " " in text:
            raise ValueError("a key is printable ASCII without spaces, as clients send it in an HTTP header.")
        if len(text) < MIN_KEY_CHARS:
            raise ValueError(f"a key has at least {MIN_KEY_CHARS} characters; `openssl rand -hex 32` makes a good one.")
        return text


def _file_text(path: object) -> str:
    if not isinstance(path, str):
        raise ValueError(_NO_KEY)  # noqa: TRY004 - pydantic takes no other kind
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not a text file"
        raise ValueError(f"the file {path} cannot be read: {reason}.") from None


def _check_tenant(name: str) -> str:
    if not (is_key(name) and name.isprintable()) or name != name.strip():
        raise ValueError("a tenant's name is 1 to 1024 bytes of printable text without white space around it.")
    return name


def _as_several(value: Any) -> Any:  # noqa: ANN401 - any input
    if value in ([], ()):
        raise ValueError("a tenant has at least one key.")
    return value if isinstance(value, (list, tuple)) else (value,)


Tenant = Annotated[str, AfterValidator(_check_tenant)]
Keys = Annotated[tuple[ClientKey, ...], BeforeValidator(_as_several)]


class JwtAuthentication(Section):
    """JSON Web Tokens of one issuer, sent as `authorization: Bearer TOKEN`. A token must have an expiry."""

    issuer: str = Field(min_length=1)
    """What the claim `iss` of each token is."""

    audiences: tuple[str, ...] = ()
    """Of these, the claim `aud` of each token holds at least one. None: any token of the issuer is taken, also one that
    was made for another service."""

    tenant_claim: str = Field(min_length=1)
    """The claim that names the tenant, such as `sub`, or `org.id` for the `id` in the claim `org`. A token without it
    is answered 403."""

    jwks_url: str | None = None
    """Where the issuer's public keys are, such as `https://login.example/.well-known/jwks.json`. Either this or
    `jwks_file`."""

    jwks_file: Path | None = None
    """A file of them, read when the gateway starts."""

    jwks_timeout_s: float = Field(default=5.0, gt=0, le=60)
    """How long the server of `jwks_url` may take, in seconds; it is asked again a second after it failed."""

    jwks_ttl_s: float = Field(default=300.0, ge=1, le=86_400)
    """How old keys of `jwks_url` may get before they are asked for again, in seconds."""

    clock_skew_s: int = Field(default=60, ge=0, le=3600)
    """How far the issuer's clock may be from Envoy's, in seconds."""

    @field_validator("jwks_url")
    @classmethod
    def _check_url(cls, value: str | None) -> str | None:
        if value is not None:
            _origin(value)
        return value

    @field_validator("jwks_file")
    @classmethod
    def _check_file(cls, value: Path | None) -> Path | None:
        if value is not None and not value.is_file():
            raise ValueError(f"there is no file {value}.")
        return value and value.absolute()

    @model_validator(mode="after")
    def _check_one_source(self) -> JwtAuthentication:
        if (self.jwks_url is None) == (self.jwks_file is None):
            raise ValueError("give exactly one of `jwks_url` and `jwks_file`.")
        return self

    @property
    def jwks_server(self) -> Upstream | None:
        """The server of `jwks_url`."""
        return None if self.jwks_url is None else _origin(self.jwks_url)


def _origin(url: str) -> Upstream:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.fragment:
        raise ValueError(f"{url!r} is not a URL such as https://login.example/.well-known/jwks.json.")
    return Upstream(url=f"{parts.scheme}://{parts.netloc}")


class Authentication(Section):
    """How clients show whose they are: by keys that stand here, or by tokens of an issuer. Envoy refuses all others
    with 401, takes the credential out of the request, and tells the filters the tenant."""

    api_keys: dict[Tenant, Keys] | None = None
    """Tenants and their keys, sent as `authorization: Bearer KEY`. A key is a text, best `${NAME}`, or `{file: PATH}`;
    a tenant may have a list of keys, so that one can be replaced by another while both are valid."""

    jwt: JwtAuthentication | None = None
    """Tokens."""

    def redacted(self) -> Authentication:
        """The same section with a placeholder for each key."""
        hidden = {tenant: (ClientKey(HIDDEN),) * len(keys) for tenant, keys in (self.api_keys or {}).items()}
        return self.model_copy(update={"api_keys": hidden or None})

    @field_validator("api_keys", mode="before")
    @classmethod
    def _require_names(cls, value: Any) -> Any:  # noqa: ANN401 - any input
        if value is not None and (not isinstance(value, dict) or not value):
            raise ValueError("name at least one tenant and its key, such as {acme: ${ACME_KEY}}.")
        return value

    @field_validator("api_keys")
    @classmethod
    def _require_different_keys(cls, value: dict[str, tuple[ClientKey, ...]] | None) -> Any:  # noqa: ANN401 - as given
        seen: set[str] = set()
        twice = []
        for tenant, keys in (value or {}).items():
            if len(seen | {key.reveal() for key in keys}) < len(seen) + len(keys):
                twice.append(custom_error("one of its keys is given twice: each key stands for one tenant.", (tenant,)))
            seen |= {key.reveal() for key in keys}
        reject("api_keys", twice)
        return value

    @model_validator(mode="after")
    def _check_one_kind(self) -> Authentication:
        if (self.api_keys is None) == (self.jwt is None):
            raise ValueError("give exactly one of `api_keys` and `jwt`.")
        return self
