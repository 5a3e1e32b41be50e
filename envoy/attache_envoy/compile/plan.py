"""A gateway's chains cut into segments: what shares one ext_proc stream, and what a loop listener holds.

Knows entries and filter classes; is unaware of Envoy's configuration. Invariants: the hosted filters of a chain's
segments, joined, are the chain's hosted filters in order; names of segments are unique in the gateway; only chains
that a route leads to are planned. A chain with a loop listener is planned once for each inference server that its
routes lead to: the listener must know where its rounds go, and the filter that asks a server is set up for it. The
first of these plans has the chain's name, a further one `{chain}@{upstream}`; what stands between their segments is
the same in each, and has one name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any

from attache_core.json_codec import Json
from attache_envoy.compile.asking import entry_for
from attache_envoy.gateway.entries import Entry, ExtProcEntry, FilterEntry, ForeignService, NativeEntry, flatten
from attache_envoy.gateway.model import Gateway, Placement, Route
from attache_filters.sdk.filter import FilterConfig, InferenceFilter
from attache_filters.sdk.registry import FilterClass, load_filters

_EXT_PROC_TYPE = "envoy.extensions.filters.http.ext_proc.v3.ExternalProcessor"


@dataclass(frozen=True, slots=True)
class HostedFilter:
    """A filter that a worker process runs: its entry-point name and its checked settings."""

    name: str
    config: FilterConfig


@dataclass(frozen=True, slots=True)
class PlannedSegment:
    """Hosted filters that share one ext_proc stream, outermost first.

    Attributes:
        name: `{chain}/{position of its first entry}` in fused, `{chain}/{filter}` in split placement.
        is_first: whether it is the first segment of its chain, which reads what a client sent; the others read what
            filters made of it.
        calls_below_again: whether it calls below other than by letting the held request go on, so that it has a loop
            listener: because one of its filters may call below more than once or goes on without its client, or because
            it asks the inference server and no segment above it has a loop listener. Only over a loop listener can the
            death of an inference server that has begun to stream become `response.failed`.
        outlives_client: whether its turns may go on when their clients go away.
    """

    name: str
    entries: tuple[HostedFilter, ...]
    is_first: bool
    calls_below_again: bool
    outlives_client: bool = False


@dataclass(frozen=True, slots=True)
class PlannedNative:
    """One of Envoy's own filters; its configuration is passed on untouched."""

    name: str
    typed_config: Json


@dataclass(frozen=True, slots=True)
class PlannedForeign:
    """Somebody else's ext_proc service."""

    name: str
    service: ForeignService


Element = PlannedSegment | PlannedNative | PlannedForeign
"""What becomes one HTTP filter of Envoy."""


@dataclass(frozen=True, slots=True)
class PlannedChain:
    """A chain as Envoy sees it, outermost first.

    Attributes:
        name: the chain's in the gateway file, or `{chain}@{upstream}`.
        elements: one for each HTTP filter.
        source: the chain's name in the gateway file.
        upstreams: the names of the upstreams that it leads to; several only where it has no loop listener.
    """

    name: str
    elements: tuple[Element, ...]
    source: str
    upstreams: tuple[str, ...]

    @property
    def ext_proc_filters(self) -> int:
        """How many of its elements are ext_proc filters, whoever wrote their services."""
        return sum(_is_ext_proc(element) for element in self.elements)

    @property
    def has_loop(self) -> bool:
        """Whether a segment of it has a loop listener, so that an exchange may be silent while other rounds run."""
        return any(isinstance(element, PlannedSegment) and element.calls_below_again for element in self.elements)

    @property
    def above_hosted(self) -> tuple[Element, ...]:
        """What stands above its first segment: what a bypassed request passes all the same."""
        return tuple(takewhile(lambda element: not isinstance(element, PlannedSegment), self.elements))

    def settings_of(self, name: str) -> tuple[Any, ...]:
        """What its hosted filters have for a setting of that name, outermost first."""
        segments = [element for element in self.elements if isinstance(element, PlannedSegment)]
        configs = [entry.config for segment in segments for entry in segment.entries]
        return tuple(getattr(config, name) for config in configs if hasattr(config, name))

    def below(self, segment: str) -> PlannedChain:
        """What stands under a segment: the chain of its loop listener."""
        names = [element.name for element in self.elements]
        return replace(self, elements=self.elements[names.index(segment) + 1 :])

    def serves(self, gateway: Gateway, route: Route) -> bool:
        """Whether this is what a route's requests pass."""
        return self.source == route.chain and gateway.upstream_of(route) in self.upstreams


@dataclass(frozen=True, slots=True)
class Plan:
    """All chains of a gateway that a route leads to, in the order of the file."""

    chains: tuple[PlannedChain, ...]

    def chain_of(self, gateway: Gateway, route: Route) -> PlannedChain | None:
        """What a route's requests pass; None where Envoy alone passes them on."""
        return next((chain for chain in self.chains if chain.serves(gateway, route)), None)

    def bypassed(self, gateway: Gateway) -> tuple[PlannedChain, ...]:
        """The chains that a route lets stateless requests past."""
        sources = {route.chain for route in gateway.routes if route.bypass is not None}
        return tuple(chain for chain in self.chains if chain.source in sources)

    @property
    def segments(self) -> tuple[PlannedSegment, ...]:
        """Every segment of every chain: what each worker process runs."""
        return tuple(
            element for chain in self.chains for element in chain.elements if isinstance(element, PlannedSegment)
        )

    @property
    def chained(self) -> bool:
        """Whether a request may pass several ext_proc filters, which older Envoys get wrong (`envoy_version`)."""
        return any(chain.ext_proc_filters > 1 for chain in self.chains)

    @property
    def loops(self) -> tuple[tuple[PlannedSegment, PlannedChain], ...]:
        """The segments that have a loop listener, each with the chain below it."""
        return tuple(
            (element, chain.below(element.name))
            for chain in self.chains
            for element in chain.elements
            if isinstance(element, PlannedSegment) and element.calls_below_again
        )


def plan(gateway: Gateway, *, filters: Mapping[str, FilterClass] | None = None) -> Plan:
    """Cut the chains of a gateway that routes lead to into segments.

    Args:
        gateway: from `load_gateway`, so its entries name filters that exist.
        filters: default, the installed ones.
    """
    known = load_filters() if filters is None else filters
    return Plan(tuple(chain for name in gateway.chains for chain in _plans_of(gateway, name, known)))


def _plans_of(gateway: Gateway, name: str, filters: Mapping[str, FilterClass]) -> Iterator[PlannedChain]:
    upstreams = gateway.upstreams_of(name)
    for number, upstream in enumerate(upstreams):
        planned_name = f"{name}@{upstream}" if number else name
        entries = [entry_for(gateway.upstreams[upstream], entry, filters) for entry in flatten(gateway.chains[name])]
        elements = _Cutter(planned_name, name, gateway.placement, filters).cut(entries)
        chain = PlannedChain(planned_name, elements, name, (upstream,))
        if not chain.has_loop:
            yield replace(chain, upstreams=upstreams)
            return
        yield chain


def _is_ext_proc(element: Element) -> bool:
    if isinstance(element, PlannedNative):
        return str(element.typed_config["@type"]).endswith(f"/{_EXT_PROC_TYPE}")
    return True


@dataclass(slots=True)
class _Cutter:
    chain: str
    source: str
    placement: Placement
    filters: Mapping[str, FilterClass]
    names: set[str] = field(default_factory=set)
    is_first: bool = True
    """Whether the next segment is the chain's first."""
    has_loop: bool = False
    """Whether a segment above the next one has a loop listener."""

    def cut(self, entries: Iterable[Entry]) -> tuple[Element, ...]:
        elements: list[Element] = []
        run: list[FilterEntry] = []
        start = 0
        for position, entry in enumerate(entries):
            alone = not isinstance(entry, FilterEntry) or entry.isolate or self.placement == "split"
            if run and alone:
                elements.append(self._segment(start, run))
                run = []
            if not isinstance(entry, FilterEntry):
                elements.append(self._other(position, entry))
            elif alone:
                elements.append(self._segment(position, [entry]))
            else:
                start = start if run else position
                run.append(entry)
        return tuple(elements) + ((self._segment(start, run),) if run else ())

    def _segment(self, position: int, run: list[FilterEntry]) -> PlannedSegment:
        name = run[0].filter if self.placement == "split" else str(position)
        hosted = tuple(HostedFilter(entry.filter, self._config(entry)) for entry in run)
        outlives = any(self.filters[each.name].outlives_client(each.config) for each in hosted)
        first, again = self.is_first, outlives or self._calls_below_again(run)
        self.is_first = False
        self.has_loop = self.has_loop or again
        return PlannedSegment(self._unique(f"{self.chain}/{name}"), hosted, first, again, outlives)

    def _calls_below_again(self, run: list[FilterEntry]) -> bool:
        classes = [self.filters[entry.filter] for entry in run]
        asks_upstream = any(issubclass(each, InferenceFilter) for each in classes)
        return any(each.calls_below_again for each in classes) or (asks_upstream and not self.has_loop)

    def _config(self, entry: FilterEntry) -> FilterConfig:
        return self.filters[entry.filter].config_type.model_validate(entry.settings)

    def _other(self, position: int, entry: NativeEntry | ExtProcEntry) -> Element:
        if isinstance(entry, NativeEntry):
            return PlannedNative(f"{entry.envoy.name}/{self.source}/{position}", entry.envoy.typed_config)
        return PlannedForeign(f"foreign/{self.source}/{position}", entry.ext_proc)

    def _unique(self, name: str) -> str:
        candidate, number = name, 2
        while candidate in self.names:
            candidate, number = f"{name}-{number}", number + 1
        self.names.add(candidate)
        return candidate
