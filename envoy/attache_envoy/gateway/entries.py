"""The entries of a chain: a hosted filter, a native Envoy filter, or somebody else's ext_proc service.

A hosted filter's own settings stand beside `filter:`. Whether they are right is checked when the validation context
holds the installed filters (`FilterCheck`); without one, as when a resolved file is read back, only shapes are checked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from attache_core.json_codec import Json
from attache_envoy.gateway.problems import custom_error, in_our_words, reject, suggestion
from attache_envoy.gateway.section import Section
from attache_filters.sdk.filter import InferenceFilter, TurnFilter
from attache_filters.sdk.registry import FilterClass


@dataclass(frozen=True, slots=True)
class FilterCheck:
    """Validation context: the filters that entries may name."""

    filters: Mapping[str, FilterClass]


class FilterEntry(Section):
    """A hosted filter. All keys but those below are the filter's own settings (`attache filters NAME` lists them)."""

    model_config = ConfigDict(extra="allow")

    filter: str
    """The filter's name: an entry point of the group `attache.filters`."""

    loop: tuple[Entry, ...] | None = None
    """What stands below a filter that may call below more than once. Only on the last entry of its list: the same
    chain as listing these entries after it, written so that the reader sees what runs once per round."""

    isolate: bool = False
    """Give this filter an ext_proc stream of its own also in fused placement."""

    @property
    def settings(self) -> Json:
        """The filter's own settings as the file states them."""
        return dict(self.__pydantic_extra__ or {})

    @model_validator(mode="after")
    def _check_filter(self, info: ValidationInfo) -> FilterEntry:
        if isinstance(info.context, FilterCheck):
            self._check_against(info.context.filters)
        return self

    def _check_against(self, filters: Mapping[str, FilterClass]) -> None:
        found = filters.get(self.filter)
        if found is None:
            message = f"there is no filter {self.filter!r}.{suggestion(self.filter, filters, 'filters')}"
            reject("entry", [custom_error(message, ("filter",), self.filter)])
            return
        lines = []
        if self.loop is not None and not found.calls_below_again:
            again = [name for name, kind in filters.items() if kind.calls_below_again]
            message = f"{self.filter} calls below only once: put these entries after it, without `loop:`."
            lines.append(custom_error(f"{message} Filters that loop: {', '.join(sorted(again))}.", ("loop",)))
        try:
            found.config_type.model_validate(self.settings)
        except ValidationError as error:
            known = [*found.config_type.model_fields, *FilterEntry.model_fields]
            lines += [custom_error(line["msg"], line["loc"]) for line in in_our_words(error, known).errors()]
        reject("entry", lines)


class NativeFilter(Section):
    """Any HTTP filter of Envoy itself, spliced into the chain as it is written."""

    name: str = Field(min_length=1)
    """A name for Envoy's statistics and configuration dump, such as `envoy.filters.http.lua`."""

    typed_config: Json
    """The filter's configuration as Envoy documents it, `@type` included."""

    @field_validator("typed_config")
    @classmethod
    def _check_type(cls, value: Json) -> Json:
        if not isinstance(value.get("@type"), str):
            raise ValueError(  # noqa: TRY004 - pydantic reports ValueErrors only
                "Envoy needs an `@type`, such as type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua."
            )
        return value


class NativeEntry(Section):
    """A native Envoy filter between hosted ones."""

    envoy: NativeFilter
    """The filter."""


HeaderMode = Literal["SEND", "SKIP"]
BodyMode = Literal["NONE", "STREAMED", "BUFFERED", "BUFFERED_PARTIAL", "FULL_DUPLEX_STREAMED"]


class ProcessingMode(Section):
    """Which parts of an exchange the service is sent (Envoy's `ProcessingMode`)."""

    request_header_mode: HeaderMode = "SEND"
    """Request headers."""
    response_header_mode: HeaderMode = "SEND"
    """Response headers."""
    request_body_mode: BodyMode = "NONE"
    """Request body."""
    response_body_mode: BodyMode = "NONE"
    """Response body."""
    request_trailer_mode: HeaderMode = "SKIP"
    """Request trailers; `SEND` is needed with a FULL_DUPLEX_STREAMED request body."""
    response_trailer_mode: HeaderMode = "SKIP"
    """Response trailers; `SEND` is needed with a FULL_DUPLEX_STREAMED response body."""

    @model_validator(mode="after")
    def _check_trailers(self) -> ProcessingMode:
        lines = [
            custom_error(
                f"Envoy needs SEND here while {way}_body_mode is FULL_DUPLEX_STREAMED.", (f"{way}_trailer_mode",)
            )
            for way in ("request", "response")
            if getattr(self, f"{way}_body_mode") == "FULL_DUPLEX_STREAMED"
            and getattr(self, f"{way}_trailer_mode") != "SEND"
        ]
        reject("processing_mode", lines)
        return self


class ForeignService(Section):
    """Somebody else's ext_proc service, plaintext gRPC."""

    address: str
    """`host:port`, `[ipv6]:port` or `unix:/path`."""

    processing_mode: ProcessingMode = ProcessingMode()
    """What it is sent; request and response headers by default."""

    message_timeout_s: float = Field(default=5.0, gt=0, le=3600)
    """How long it may take for one answer, in seconds. Envoy does not apply it to FULL_DUPLEX_STREAMED bodies."""

    failure_mode_allow: bool = False
    """Whether a request goes on without the service when it fails. Off: the client gets an error instead."""

    allow_routing_headers: bool = False
    """Whether it may change `:path`, `:method`, `:authority`, `:scheme` and `host`."""

    @field_validator("address")
    @classmethod
    def _check_address(cls, value: str) -> str:
        host, colon, port = value.rpartition(":")
        if value.startswith("unix:/"):
            return value
        if colon and host and port.isdecimal() and 0 < int(port) < 65_536:
            return value
        raise ValueError(f"{value!r} is neither host:port nor unix:/path.")


class ExtProcEntry(Section):
    """A foreign ext_proc service between hosted filters."""

    ext_proc: ForeignService
    """The service."""


_KINDS = {"filter": "<filter>", "envoy": "<envoy>", "ext_proc": "<ext_proc>"}


def _kind(value: Any) -> str | None:  # noqa: ANN401 - any input
    if isinstance(value, FilterEntry):
        return "<filter>"
    if isinstance(value, NativeEntry):
        return "<envoy>"
    if isinstance(value, ExtProcEntry):
        return "<ext_proc>"
    given = [tag for key, tag in _KINDS.items() if isinstance(value, dict) and key in value]
    return given[0] if len(given) == 1 else None


Entry = Annotated[
    Annotated[FilterEntry, Tag("<filter>")]
    | Annotated[NativeEntry, Tag("<envoy>")]
    | Annotated[ExtProcEntry, Tag("<ext_proc>")],
    Discriminator(
        _kind,
        custom_error_type="gateway",
        custom_error_message="an entry is one of `filter: NAME`, `envoy: {…}` and `ext_proc: {…}`.",
    ),
]
"""One entry of a chain."""


def _check_loops(entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
    message = "only the last entry of a list may have a loop: what follows it goes inside."
    lines = [
        custom_error(message, (index, "loop"))
        for index, entry in enumerate(entries[:-1])
        if isinstance(entry, FilterEntry) and entry.loop is not None
    ]
    reject("chain", lines)
    return entries


Chain = Annotated[tuple[Entry, ...], AfterValidator(_check_loops)]
"""The entries of a chain, in the order in which a request passes them."""


def flatten(entries: Iterable[Entry]) -> Iterator[Entry]:
    """A chain as one list: the entries of a loop follow the entry that has it."""
    for entry in entries:
        yield entry
        if isinstance(entry, FilterEntry) and entry.loop is not None:
            yield from flatten(entry.loop)


def hands_turns_down(entries: Iterable[Entry], filters: Mapping[str, FilterClass]) -> bool:
    """Whether a chain takes turns and has no filter that asks an inference server: what is below it gets them as they
    are. Filters that are not known count as none."""
    names = [entry.filter for entry in flatten(entries) if isinstance(entry, FilterEntry)]
    kinds = [filters[name] for name in names if name in filters]
    takes_turns = any(issubclass(kind, TurnFilter) for kind in kinds)
    return takes_turns and not any(issubclass(kind, InferenceFilter) for kind in kinds)
