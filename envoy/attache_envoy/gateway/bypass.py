"""Where a route may let requests past its chain (`bypass`): what must be so, said for each route that is not.

Knows which requests can be recognised, and what of a chain may be passed by; is unaware of how Envoy does it
(`compile.stateless`). Invariants: what stands above the first hosted filter sees every request, bypassed or not; all
from there on declares that it need not; the answer of the upstream is one that a client may get unread.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import dropwhile

from pydantic import ValidationError

from attache_envoy.gateway.entries import Entry, ExtProcEntry, FilterEntry, NativeEntry, flatten
from attache_envoy.gateway.upstream import Upstream
from attache_filters.sdk.registry import FilterClass

BYPASSED_PATH = "/v1/responses"

_NO_CHAIN = "there is no chain to bypass: leave `bypass` out, or name the chain."
_OTHER_PATH = f"only a route with `path: {BYPASSED_PATH}` can be bypassed: chains ask the upstream there."
_NOT_UNREAD = (
    "the answer would reach the client unread, and {why}: leave `bypass` out, or say `dialect: openai` of an upstream "
    "whose answers are the API's own."
)
_ABOVE = "place it above the first hosted filter, where it sees every request, or leave `bypass` out."
_NATIVE = "`envoy: {{name: {name}}}` would not see what is bypassed as the chain has it: " + _ABOVE
_FOREIGN = "the `ext_proc` service at {address} would not see what is bypassed: " + _ABOVE
_HOSTED = (
    "the filter {name}, as it is set up here, must see every turn, and would not see what is bypassed: leave `bypass` "
    "out, or the filter."
)


def bypass_problems(
    path: str | None,
    chain: Iterable[Entry] | None,
    upstreams: Mapping[str, Upstream],
    filters: Mapping[str, FilterClass],
) -> Iterator[str]:
    """What keeps a route from being bypassed, as sentences that say what would be right.

    Args:
        path: the route's whole path, where it matches by that.
        chain: the entries of its chain; None without one.
        upstreams: those that it leads to, by name.
        filters: the classes of hosted filters; those that are not known are not asked.
    """
    if chain is None:
        yield _NO_CHAIN
        return
    if path != BYPASSED_PATH:
        yield _OTHER_PATH
    for name, upstream in upstreams.items():
        if upstream.api != "responses":
            yield _NOT_UNREAD.format(why=f"the upstream {name!r} speaks Chat Completions")
        elif upstream.dialect != "openai":
            yield _NOT_UNREAD.format(why=f"the dialect of the upstream {name!r} is {upstream.dialect!r}")
    for entry in dropwhile(lambda entry: not isinstance(entry, FilterEntry), flatten(chain)):
        yield from _must_see(entry, filters)


def _must_see(entry: Entry, filters: Mapping[str, FilterClass]) -> Iterator[str]:
    match entry:
        case NativeEntry():
            yield _NATIVE.format(name=entry.envoy.name)
        case ExtProcEntry():
            yield _FOREIGN.format(address=entry.ext_proc.address)
        case FilterEntry():
            if entry.filter in filters and not _may_be_bypassed(entry, filters[entry.filter]):
                yield _HOSTED.format(name=entry.filter)


def _may_be_bypassed(entry: FilterEntry, filter_class: FilterClass) -> bool:
    try:
        config = filter_class.config_type.model_validate(entry.settings)
    except ValidationError:
        return True  # its settings are refused for themselves
    return filter_class.may_be_bypassed(config)
