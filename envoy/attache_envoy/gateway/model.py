"""The gateway file as a value: every key with its default, its bounds and its documentation.

A value of this model is complete and consistent: shorthands are expanded, defaults filled in, and every name leads
somewhere. Dumped as JSON and read back it is the same value.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import (
    AfterValidator,
    BaseModel,
    Field,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    field_validator,
    model_validator,
)

from attache_core.secret import HIDDEN
from attache_core.storage.settings import NO_URL, StorageSettings, StoreUrl
from attache_core.tools.mcp.settings import McpSettings
from attache_core.tools.outbound.secret import ApiKey
from attache_core.tools.shell.settings import ShellSettings
from attache_core.tools.web_search.settings import WebSearchSettings
from attache_core.turn.compaction.settings import CompactionSettings
from attache_envoy.gateway.authentication import Authentication
from attache_envoy.gateway.bypass import bypass_problems
from attache_envoy.gateway.cpus import usable_cpus
from attache_envoy.gateway.entries import Chain, FilterCheck, FilterEntry, flatten, hands_turns_down
from attache_envoy.gateway.models import by_precedence, given_twice
from attache_envoy.gateway.problems import custom_error, in_our_words, reject, suggestion
from attache_envoy.gateway.section import Section
from attache_envoy.gateway.tools import ToolSections
from attache_envoy.gateway.upstream import Upstream
from attache_filters.extproc.transport.choice import Transport
from attache_filters.sdk.registry import FilterClass

Placement = Literal["fused", "split"]
_NOT_ASKED_OVER_CHAT = (
    "its turns reach the upstream {upstream!r} as they are, and that one speaks only Chat Completions: "
    "end the chain with `filter: upstream_round`."
)
_CORE_SETTINGS: Mapping[str, type[BaseModel]] = {
    "compaction": CompactionSettings,
    "mcp": McpSettings,
    "web_search": WebSearchSettings,
    "shell": ShellSettings,
}
DEFAULT_UPSTREAM = "default"
MIN_AUTO_WORKERS = 2
MAX_WORKERS = 256

NO_AUTHENTICATION = "say how clients show whose they are, by `api_keys:` or `jwt:`; or leave the section out."

DEFAULT_STORAGE: Mapping[str, Any] = {"url": "sqlite:///attache.db"}

DEFAULT_CHAINS: Mapping[str, Any] = {
    "responses": [
        {"filter": "validate"},
        {"filter": "persist"},
        {"filter": "rehydrate"},
        {"filter": "tool_dispatch", "loop": [{"filter": "upstream_round"}]},
    ],
    "resources": [{"filter": "resources"}],
}
COMPACTING_CHAINS: Mapping[str, Any] = {
    **DEFAULT_CHAINS,
    "responses": [
        *DEFAULT_CHAINS["responses"][:-1],
        {"filter": "tool_dispatch", "loop": [{"filter": "compact"}, {"filter": "upstream_round"}]},
    ],
    "compaction": [{"filter": "compact_endpoint"}, {"filter": "upstream_round"}],
}
"""The same where the gateway file has a section `compaction`."""

COMPACTING_FILTERS = frozenset({"compact", "compact_endpoint"})

READY_ROUTE: Mapping[str, Any] = {"match": {"path": "/ready", "methods": ["GET"]}, "chain": "resources"}

DEFAULT_ROUTES: tuple[Mapping[str, Any], ...] = (
    {"match": {"path": "/v1/responses", "methods": ["POST"]}, "chain": "responses"},
    {"match": {"path": "/v1/responses/{response_id}", "methods": ["GET"]}, "chain": "resources"},
    READY_ROUTE,
    {"match": {"prefix": "/v1/responses"}, "chain": "resources"},
    {"match": {"prefix": "/v1/conversations"}, "chain": "resources"},
    {"match": {"prefix": "/v1"}},
)
"""State is ours alone: what is asked of it that no filter knows is answered 404, never by an inference server, which
keeps none."""

COMPACTING_ROUTES: tuple[Mapping[str, Any], ...] = (
    {"match": {"path": "/v1/responses/compact", "methods": ["POST"]}, "chain": "compaction"},
    *DEFAULT_ROUTES,
)
"""The same where the gateway file has a section `compaction`."""


class Address(NamedTuple):
    """An IP address (IPv6 without brackets) and a port; port 0 is any free one."""

    host: str
    port: int

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        return ipaddress.ip_address(self.host).is_loopback


def _check_name(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,40}", name):
        raise ValueError("a name is 1 to 40 letters, digits, `_` and `-`.")
    return name


Name = Annotated[str, AfterValidator(_check_name)]


class Match(Section):
    """Which requests a route takes: by path, and by method. Query strings do not count."""

    path: str | None = None
    """The whole path. `{name}` stands for exactly one segment: `/v1/responses/{response_id}`."""

    prefix: str | None = None
    """The path or any path below it: `/v1` takes `/v1` and `/v1/models`, not `/v10`."""

    methods: tuple[str, ...] = ()
    """HTTP methods in upper case; none means all."""

    @field_validator("path", "prefix")
    @classmethod
    def _check_path(cls, value: str | None) -> str | None:
        if value is not None and not re.fullmatch(r"/[^?#\s]*", value):
            raise ValueError(f"{value!r} does not begin with `/`, or has a query string or white space.")
        return value

    @field_validator("prefix")
    @classmethod
    def _check_prefix(cls, value: str | None) -> str | None:
        return value if value in (None, "/") else str(value).rstrip("/")

    @field_validator("methods")
    @classmethod
    def _check_methods(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        wrong = [method for method in value if not re.fullmatch(r"[A-Z]+", method)]
        if wrong:
            raise ValueError(f"methods are in upper case, such as POST, not {wrong[0]!r}.")
        return value

    @model_validator(mode="after")
    def _check_one_kind(self) -> Match:
        if (self.path is None) == (self.prefix is None):
            raise ValueError("give exactly one of `path` and `prefix`.")
        return self


class Route(Section):
    """Where requests go."""

    match: Match
    """Which requests."""

    chain: str | None = None
    """The chain they pass; without one, Envoy alone passes them to the upstream."""

    upstream: str | None = None
    """Which upstream; without one, the upstream that has the request's model, where upstreams have `models`, and else
    the upstream named `default`, or the first."""

    bypass: Literal["stateless"] | None = None
    """`stateless`: a request that needs neither state nor a tool of the gateway's goes from Envoy to the upstream, and
    its answer back as it is. Only for the path `/v1/responses` and upstreams with `dialect: openai`."""

    @property
    def asks_readiness(self) -> bool:
        """Whether it is the one for `GET /ready`, whichever upstream it leads to, which needs no credential."""
        return self.model_copy(update={"upstream": None}) == Route.model_validate(READY_ROUTE)


class Choice(NamedTuple):
    """One of the ways that a route may lead: with its `upstream`, for requests of a model, or for all others (None)."""

    route: Route
    model: str | None


class Limits(Section):
    """Bounds on what one client, or all of them, may take."""

    max_request_bytes: int = Field(default=10 * 2**20, ge=1)
    """The size of the body of a client's request to a chain; larger ones are answered with 413."""

    max_turn_bytes: int = Field(default=128 * 2**20, ge=1)
    """The size of a turn between two filters of a chain: the client's request and the whole conversation before it.
    Not less than `max_request_bytes`."""

    max_reply_bytes: int = Field(default=64 * 2**20, ge=1)
    """How much one answer may send to a client: Envoy keeps in memory what a slow client has not read yet."""

    max_connections: int = Field(default=10_000, ge=1)
    """How many client connections may be open; further ones are closed at once."""

    max_streams: int = Field(default=65_536, ge=1, le=2**31)
    """How many ext_proc streams to the workers may be open at once, one per segment and exchange; an exchange above
    that is answered with 503."""

    max_header_kib: int = Field(default=60, ge=1, le=8192)
    """The size of a request's headers; larger ones are answered with 431."""

    max_bypass_bytes: int = Field(default=64 * 2**10, ge=1)
    """The size of a request that `bypass: stateless` looks at. A larger one passes the chain, and so does one without a
    `content-length`, or one that is larger than `connection_buffer_bytes`."""

    connection_buffer_bytes: int = Field(default=2**20, ge=2**14, le=2**30)
    """How much Envoy holds per connection before it stops reading."""

    @model_validator(mode="after")
    def _check_sizes(self) -> Limits:
        if self.max_turn_bytes < self.max_request_bytes:
            message = f"must not be less than max_request_bytes ({self.max_request_bytes})."
            reject("limits", [custom_error(message, ("max_turn_bytes",))])
        return self


class Timeouts(Section):
    """How long things may take. A turn has no limit, neither as a whole nor for its silence while later rounds and
    tools run: only the inference server's silence has (see `upstreams`), and a client's while it sends its request or
    does not read."""

    stream_idle_s: float = Field(default=600, gt=0, le=86_400)
    """How long an exchange without a chain may pass without a byte in either direction, in seconds; how long a client
    may leave a complete answer unread; and how much longer than its inference server a later round of a turn may be
    silent because of the filters in it."""

    request_s: float = Field(default=300, gt=0, le=86_400)
    """How long a client may take to send a whole request, in seconds."""

    request_headers_s: float = Field(default=30, gt=0, le=3600)
    """How long a client may take to send a request's headers, in seconds."""

    worker_connect_s: float = Field(default=1, gt=0, le=60)
    """How long to wait for a connection to a worker process or foreign ext_proc service, in seconds."""


class Gateway(Section):
    """A gateway file. `upstream: http://127.0.0.1:8000` alone is a complete one: it stands for
    `upstreams: {default: {url: …}}`, and all else has a default."""

    listen: str = "127.0.0.1:8080"
    """`address:port` for clients. The address is an IP address or `localhost`; port 0 is any free one."""

    storage: StorageSettings = Field(default_factory=lambda: StorageSettings.model_validate(DEFAULT_STORAGE))
    """Where turns are stored: `sqlite:///relative/path.db`, `sqlite:////absolute/path.db` or `postgresql://…`. A text
    is the section's `url`."""

    authentication: Authentication | None = None
    """Who may use the gateway, and which tenant's state each client sees. Without it everybody may, and there is one
    tenant."""

    placement: Placement = "fused"
    """`fused`: neighbouring hosted filters share one ext_proc stream. `split`: each has its own (needs Envoy 1.39)."""

    workers: int = Field(default=2, ge=1, le=MAX_WORKERS)
    """How many worker processes run the hosted filters. `auto` is as many as there are CPUs that this process may use,
    and at least 2, so that a worker that is busy or dies never is the only one."""

    transport: Transport = "lean"
    """What carries gRPC between Envoy and them. `lean`: this project's own server, which takes the least CPU. `grpcio`:
    gRPC's own library for Python. Nothing else differs."""

    upstreams: dict[Name, Upstream]
    """Inference servers by name."""

    compaction: CompactionSettings | None = None
    """Lets conversations be compacted: the keys for checkpoints. Without it there is no compaction."""

    chains: dict[Name, Chain] = Field(default_factory=dict, validate_default=True)
    """Chains by name. A chain named here replaces the default one of that name as a whole; the others stay."""

    routes: tuple[Route, ...] = Field(default=(), validate_default=True)
    """Tried in this order. The default routes come after them, except those whose `match` is given here. `/health` is
    always answered by Envoy, and what no route takes with 404."""

    limits: Limits = Limits()
    """Bounds on sizes and numbers."""

    timeouts: Timeouts = Timeouts()
    """Bounds on time."""

    mcp: McpSettings = Field(default_factory=McpSettings, validate_default=True)
    """MCP servers: time limits, pooling, and whether private addresses may be contacted. `allow_private_addresses` left
    out means: yes if `listen` is a loopback address, no otherwise."""

    web_search: WebSearchSettings | None = None
    """Web search: the provider that is asked, and which pages may be read. Without it, `web_search` is a tool that
    nothing here runs."""

    shell: ShellSettings | None = None
    """Grants a shell: commands of a `shell` whose `environment` is `container_auto` are run by the gateway. `shell: {}`
    grants it as it is by default; without the section such a shell is a tool that nothing here runs."""

    tools: ToolSections = Field(default_factory=dict)
    """Settings of the tool types of other packages, by the names of their entry points, such as
    `tools: {acme_lookup: {…}}`. A type whose settings have a key without a default runs only where it has an entry."""

    @property
    def address(self) -> Address:
        """`listen`, parsed."""
        return _parse_listen(self.listen)

    @property
    def default_upstream(self) -> str:
        """The upstream of routes that name none, and, where others have `models`, of all models that none has."""
        others = [name for name, each in self.upstreams.items() if not each.models] or list(self.upstreams)
        return DEFAULT_UPSTREAM if DEFAULT_UPSTREAM in others else others[0]

    @property
    def knows_all_models(self) -> bool:
        """Whether every upstream says which models it has, so that another one is unknown."""
        return all(each.models for each in self.upstreams.values())

    def chooses_by_model(self, route: Route) -> bool:
        """Whether a route's upstream depends on the model that a request names in its body."""
        has_body = not route.match.methods or "POST" in route.match.methods
        return route.upstream is None and has_body and any(each.models for each in self.upstreams.values())

    def choices(self, route: Route) -> tuple[Choice, ...]:
        """The ways that a route may lead, those that count first before the others; the last one is for no model."""
        if not self.chooses_by_model(route):
            return (Choice(route, None),)
        models = by_precedence({name: each.models for name, each in self.upstreams.items()})
        named = [(name, pattern) for pattern, name in models] + [(self.default_upstream, None)]
        return tuple(Choice(route.model_copy(update={"upstream": name}), pattern) for name, pattern in named)

    def upstream_of(self, route: Route) -> str:
        """The name of a route's upstream."""
        return route.upstream or self.default_upstream

    def upstreams_of(self, chain: str) -> tuple[str, ...]:
        """The names of the upstreams that a chain's routes lead to, in the order of the routes."""
        leading = [choice for route in self.routes if route.chain == chain for choice in self.choices(route)]
        return tuple(dict.fromkeys(self.upstream_of(choice.route) for choice in leading))

    @property
    def envoys_secrets(self) -> tuple[str, ...]:
        """What of Envoy's configuration nobody may see."""
        tenants = self.authentication.api_keys if self.authentication else None
        clients = [key.reveal() for keys in (tenants or {}).values() for key in keys]
        return (*clients, *(each.api_key.reveal() for each in self.upstreams.values() if each.api_key))

    def redacted(self) -> Gateway:
        """The same gateway with placeholders in the place of `envoys_secrets`, to show what it compiles to."""
        upstreams = {
            name: each.model_copy(update={"api_key": each.api_key and ApiKey(HIDDEN)})
            for name, each in self.upstreams.items()
        }
        authentication = self.authentication and self.authentication.redacted()
        return self.model_copy(update={"authentication": authentication, "upstreams": upstreams})

    @field_validator("listen")
    @classmethod
    def _check_listen(cls, value: str) -> str:
        _parse_listen(value)
        return value

    @field_validator("workers", mode="before")
    @classmethod
    def _count_workers(cls, value: Any) -> Any:  # noqa: ANN401 - any input
        if value == "auto":
            return min(max(MIN_AUTO_WORKERS, usable_cpus()), MAX_WORKERS)
        if isinstance(value, str) and not re.fullmatch(r"[+-]?\d+", value):
            raise ValueError(f"a number of processes or `auto`, not {value!r}.")
        return value

    @field_validator("authentication", mode="before")
    @classmethod
    def _require_section(cls, value: Any) -> Any:  # noqa: ANN401 - any input
        if value is not None and not isinstance(value, (dict, Authentication)):
            raise ValueError(NO_AUTHENTICATION)
        return value

    @field_validator("storage", mode="wrap")
    @classmethod
    def _read_storage(cls, value: Any, handler: ValidatorFunctionWrapHandler) -> Any:  # noqa: ANN401 - any input
        if not isinstance(value, (str, dict, StorageSettings)):
            raise ValueError(NO_URL)  # noqa: TRY004 - pydantic takes no other kind
        try:
            return handler({"url": StoreUrl.read(value)} if isinstance(value, str) else value)
        except ValidationError as error:
            raise in_our_words(error, StorageSettings.model_fields) from None

    @field_validator("upstreams")
    @classmethod
    def _check_upstreams(cls, value: dict[str, Upstream]) -> dict[str, Upstream]:
        if not value:
            raise ValueError("name at least one inference server, such as {vllm: {url: http://127.0.0.1:8000}}.")
        twice = [
            custom_error(f"the upstream {other!r} has this model already: each is had by one.", (name, "models", place))
            for name, place, other in given_twice({name: each.models for name, each in value.items()})
        ]
        reject("upstreams", twice)
        return value

    @field_validator("chains", mode="before")
    @classmethod
    def _add_default_chains(cls, value: Any, info: ValidationInfo) -> Any:  # noqa: ANN401 - any input
        defaults = COMPACTING_CHAINS if info.data.get("compaction") else DEFAULT_CHAINS
        return {**defaults, **value} if isinstance(value, dict) else value

    @field_validator("chains")
    @classmethod
    def _check_chains(cls, value: dict[str, Chain]) -> dict[str, Chain]:
        reject(
            "chains", [custom_error("a chain has at least one entry.", (name,)) for name in value if not value[name]]
        )
        return value

    @field_validator("routes")
    @classmethod
    def _complete_routes(cls, value: tuple[Route, ...], info: ValidationInfo) -> tuple[Route, ...]:
        given = [route.match for route in value]
        known = COMPACTING_ROUTES if info.data.get("compaction") else DEFAULT_ROUTES
        defaults = [Route.model_validate(route) for route in known]
        routes = (*value, *(route for route in defaults if route.match not in given))
        _check_references(routes, info.data.get("chains"), info.data.get("upstreams"))
        return routes

    @field_validator("compaction", "mcp", "web_search", "shell", mode="wrap")
    @classmethod
    def _name_known_keys_of_tools(
        cls,
        value: Any,  # noqa: ANN401 - any input
        handler: ValidatorFunctionWrapHandler,
        info: ValidationInfo,
    ) -> Any:  # noqa: ANN401 - any input
        try:
            return handler(value)
        except ValidationError as error:
            raise in_our_words(error, _CORE_SETTINGS[str(info.field_name)].model_fields) from None

    @field_validator("mcp")
    @classmethod
    def _decide_private_addresses(cls, value: McpSettings, info: ValidationInfo) -> McpSettings:
        if "allow_private_addresses" in value.model_fields_set or "listen" not in info.data:
            return value
        allowed = _parse_listen(info.data["listen"]).is_loopback
        decided = value.model_copy(update={"allow_private_addresses": allowed})
        decided.model_fields_set.discard("allow_private_addresses")
        return decided

    @model_validator(mode="after")
    def _check_keys(self) -> Gateway:
        keyless = [] if self.compaction else [name for name, entries in self.chains.items() if _compacts(entries)]
        message = "compaction needs keys: add `compaction: {keys: [...]}`."
        reject("Gateway", [custom_error(message, ("chains", name)) for name in keyless])
        return self

    @model_validator(mode="after")
    def _check_as_a_whole(self, info: ValidationInfo) -> Gateway:
        used = {route.chain for route in self.routes} | set(DEFAULT_CHAINS)
        unused = [
            custom_error("no route leads to this chain.", ("chains", name)) for name in self.chains if name not in used
        ]
        filters = info.context.filters if isinstance(info.context, FilterCheck) else {}
        mute = [
            custom_error(_NOT_ASKED_OVER_CHAT.format(upstream=upstream), ("chains", chain))
            for chain, entries in self.chains.items()
            for upstream in self.upstreams_of(chain)
            if self.upstreams[upstream].api == "chat_completions" and hands_turns_down(entries, filters)
        ]
        bypassed = [
            custom_error(problem, ("routes", index, "bypass"))
            for index, route in enumerate(self.routes)
            if route.bypass is not None
            for problem in self._bypass_problems(route, filters)
        ]
        reject("Gateway", [*unused, *mute, *bypassed])
        return self

    def _bypass_problems(self, route: Route, filters: Mapping[str, FilterClass]) -> Iterator[str]:
        chain = None if route.chain is None else self.chains[route.chain]
        names = [self.upstream_of(choice.route) for choice in self.choices(route)]
        upstreams = {name: self.upstreams[name] for name in names}
        return bypass_problems(route.match.path, chain, upstreams, filters)


def _compacts(entries: Chain) -> bool:
    return any(isinstance(entry, FilterEntry) and entry.filter in COMPACTING_FILTERS for entry in flatten(entries))


def _parse_listen(value: str) -> Address:
    host, _, port = value.rpartition(":")
    host = "127.0.0.1" if host == "localhost" else host.removeprefix("[").removesuffix("]")
    try:
        ipaddress.ip_address(host)
    except ValueError:
        raise ValueError(f"{value!r} is not an IP address and a port, such as 127.0.0.1:8080 or [::]:8080.") from None
    if not port.isdecimal() or int(port) > 65_535:
        raise ValueError(f"{value!r}: a port is a number from 0 (any free one) to 65535.")
    return Address(host, int(port))


def _check_references(
    routes: tuple[Route, ...], chains: Mapping[str, Chain] | None, upstreams: Mapping[str, Upstream] | None
) -> None:
    lines = []
    for index, route in enumerate(routes):
        for kind, name, known in (("chain", route.chain, chains), ("upstream", route.upstream, upstreams)):
            if name is not None and known is not None and name not in known:
                message = f"there is no {kind} {name!r}.{suggestion(name, known, f'{kind}s')}"
                lines.append(custom_error(message, (index, kind), name))
    reject("routes", lines)
