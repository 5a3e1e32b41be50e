"""Chains cut into segments, in both placements."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from attache_envoy.compile.plan import (
    Element,
    HostedFilter,
    Plan,
    PlannedChain,
    PlannedForeign,
    PlannedNative,
    PlannedSegment,
    plan,
)
from attache_envoy.gateway import Gateway, default_gateway, with_options
from attache_envoy.gateway.entries import FilterCheck, FilterEntry, ForeignService, flatten
from attache_filters.sdk.filter import FilterConfig
from attache_filters.sdk.registry import load_filters
from gateway_fakes import FILTERS, AskingConfig, ChatConfig, GuardConfig, LoopConfig

LUA = {"@type": "type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua"}
EXT_PROC = {"@type": "type.googleapis.com/envoy.extensions.filters.http.ext_proc.v3.ExternalProcessor"}
PLAIN = FilterConfig()


def gateway(placement: str, entries: list[dict[str, Any]]) -> Gateway:
    value = {
        "upstreams": {"default": {"url": "http://h"}},
        "placement": placement,
        "chains": {"responses": entries},
    }
    return Gateway.model_validate(value, context=FilterCheck(FILTERS))


def real_gateway(placement: str, entries: list[dict[str, Any]]) -> Gateway:
    """With the filters that are installed."""
    value = {"upstreams": {"default": {"url": "http://h"}}, "placement": placement, "chains": {"responses": entries}}
    return Gateway.model_validate(value, context=FilterCheck(load_filters()))


def planned(placement: str, entries: list[dict[str, Any]]) -> Plan:
    return plan(gateway(placement, entries), filters=FILTERS)


CONFIGS = {"tool_dispatch": LoopConfig(), "upstream_round": AskingConfig()}


def hosted(*names: str) -> tuple[HostedFilter, ...]:
    return tuple(HostedFilter(name, CONFIGS.get(name, PLAIN)) for name in names)


def chain(name: str, *elements: Element) -> PlannedChain:
    return PlannedChain(name, elements, name, ("default",))


RESOURCES_FUSED = chain("resources", PlannedSegment("resources/0", hosted("resources"), True, False))


def test_default_gateway_fused_is_one_segment_for_each_chain() -> None:
    filters = hosted("validate", "persist", "rehydrate", "tool_dispatch", "upstream_round")
    turns = PlannedSegment("responses/0", filters, True, True)
    found = plan(default_gateway("http://h", filters=FILTERS), filters=FILTERS)
    assert found == Plan((chain("responses", turns), RESOURCES_FUSED))
    assert found.loops == ((turns, chain("responses")),)


def test_default_gateway_split_is_one_segment_for_each_filter() -> None:
    names = ["validate", "persist", "rehydrate", "tool_dispatch", "upstream_round"]
    segments = tuple(
        PlannedSegment(f"responses/{name}", hosted(name), name == "validate", name == "tool_dispatch") for name in names
    )
    resources = PlannedSegment("resources/resources", hosted("resources"), True, False)
    split = with_options(default_gateway("http://h", filters=FILTERS), placement="split")
    found = plan(split, filters=FILTERS)
    assert found == Plan((chain("responses", *segments), chain("resources", resources)))
    assert found.loops == ((segments[3], chain("responses", *segments[4:])),)


MIXED: list[dict[str, Any]] = [
    {"filter": "validate"},
    {"filter": "guard", "words": ["a"]},
    {"envoy": {"name": "lua", "typed_config": LUA}},
    {"filter": "persist", "isolate": True},
    {"filter": "rehydrate"},
    {
        "filter": "tool_dispatch",
        "max_rounds": 3,
        "loop": [{"filter": "guard"}, {"ext_proc": {"address": "unix:/x"}}, {"filter": "upstream_round"}],
    },
]
GUARD = HostedFilter("guard", GuardConfig(words=("a",)))
DISPATCH = HostedFilter("tool_dispatch", LoopConfig(max_rounds=3))
FOREIGN = PlannedForeign("foreign/responses/7", ForeignService(address="unix:/x"))


def test_native_foreign_and_isolated_entries_end_a_fused_segment() -> None:
    below = (FOREIGN, PlannedSegment("responses/8", hosted("upstream_round"), False, False))
    looping = PlannedSegment(
        "responses/4", (*hosted("rehydrate"), DISPATCH, HostedFilter("guard", GuardConfig())), False, True
    )
    found = planned("fused", MIXED)
    assert found.chains[0] == chain(
        "responses",
        PlannedSegment("responses/0", (*hosted("validate"), GUARD), True, False),
        PlannedNative("lua/responses/2", LUA),
        PlannedSegment("responses/3", hosted("persist"), False, False),
        looping,
        *below,
    )
    assert found.loops == ((looping, chain("responses", *below)),)


def test_filter_that_occurs_twice_has_two_segments_in_split_placement() -> None:
    again = PlannedSegment("responses/guard-2", (HostedFilter("guard", GuardConfig()),), False, False)
    found = planned("split", MIXED)
    assert [element.name for element in found.chains[0].elements] == [
        "responses/validate",
        "responses/guard",
        "lua/responses/2",
        "responses/persist",
        "responses/rehydrate",
        "responses/tool_dispatch",
        "responses/guard-2",
        "foreign/responses/7",
        "responses/upstream_round",
    ]
    assert found.loops[0][1].elements[0] == again


def test_segment_below_a_loop_may_have_a_loop_of_its_own() -> None:
    inner = {"filter": "tool_dispatch", "loop": [{"filter": "upstream_round"}]}
    entries = [{"filter": "tool_dispatch", "loop": [inner]}]
    split = planned("split", entries)
    names = [(segment.name, [element.name for element in below.elements]) for segment, below in split.loops]
    assert names == [
        ("responses/tool_dispatch", ["responses/tool_dispatch-2", "responses/upstream_round"]),
        ("responses/tool_dispatch-2", ["responses/upstream_round"]),
    ]
    fused = planned("fused", entries)
    assert [(segment.name, below.elements) for segment, below in fused.loops] == [("responses/0", ())]


@pytest.mark.parametrize(
    ("placement", "entries", "looping"),
    [
        ("fused", ["validate", "upstream_round"], ["responses/0"]),
        ("split", ["validate", "upstream_round"], ["responses/upstream_round"]),
        ("fused", ["tool_dispatch", "upstream_round"], ["responses/0"]),
        ("split", ["tool_dispatch", "upstream_round"], ["responses/tool_dispatch"]),
        ("split", ["tool_dispatch", "guard", "upstream_round"], ["responses/tool_dispatch"]),
        ("split", ["validate", "guard"], []),
    ],
)
def test_segment_that_asks_the_inference_server_has_a_loop_unless_one_above_it_has(
    placement: str, entries: list[str], looping: list[str]
) -> None:
    found = planned(placement, [{"filter": name} for name in entries])
    assert [segment.name for segment, _ in found.loops] == looping


@pytest.mark.parametrize("setting", ["cancel", "store_cancelled", "finish"])
@pytest.mark.parametrize(
    ("placement", "persisting"), [("split", "responses/persist"), ("fused", "responses/0")], ids=["split", "fused"]
)
def test_filter_that_finishes_turns_without_clients_has_a_loop_listener(
    placement: str, persisting: str, setting: str
) -> None:
    entries: list[dict[str, Any]] = [
        {"filter": "validate"},
        {"filter": "persist", "on_disconnect": setting},
        {"filter": "tool_dispatch", "loop": [{"filter": "upstream_round"}]},
    ]
    finishes = setting == "finish"

    segments = {segment.name: segment for segment in plan(real_gateway(placement, entries)).segments}

    assert segments[persisting].outlives_client == finishes
    assert segments[persisting].calls_below_again == (finishes or placement == "fused")
    assert [name for name, segment in segments.items() if segment.outlives_client] == [persisting] * finishes


def test_chain_that_no_route_leads_to_is_not_planned() -> None:
    value = {
        "upstreams": {"default": {"url": "http://h"}},
        "chains": {"mine": [{"filter": "guard"}]},
        "routes": [{"match": {"path": "/v1/responses", "methods": ["POST"]}, "chain": "mine"}],
    }
    checked = Gateway.model_validate(value, context=FilterCheck(FILTERS))
    assert [chain.name for chain in plan(checked, filters=FILTERS).chains] == ["resources", "mine"]


SEVERAL = """
upstreams:
  a: {url: "http://a", dialect: vllm, headers_timeout_s: 30, idle_timeout_s: 20}
  b: {url: "http://b", api: chat_completions, idle_timeout_s: 10}
  c: {url: "http://c"}
chains:
  responses:
    - filter: tool_dispatch
      loop: [{filter: upstream_round}]
  strict: [{filter: upstream_round, dialect: openai, idle_timeout_s: 5}]
  theirs: [{filter: theirs}]
routes:
  - {match: {path: /b}, chain: responses, upstream: b}
  - {match: {path: /c}, chain: responses, upstream: c}
  - {match: {path: /strict/a}, chain: strict, upstream: a}
  - {match: {path: /strict/b}, chain: strict, upstream: b}
  - {match: {path: /theirs}, chain: theirs, upstream: b}
  - {match: {path: /v1/responses, methods: [POST]}, chain: responses, upstream: a}
  - {match: {path: /stored}, chain: resources, upstream: c}
"""


def several(placement: str) -> tuple[Gateway, Plan]:
    value = {"placement": placement, **yaml.safe_load(SEVERAL)}
    checked = Gateway.model_validate(value, context=FilterCheck(FILTERS))
    return checked, plan(checked, filters=FILTERS)


def entries_of(chain: PlannedChain) -> list[HostedFilter]:
    return [entry for each in chain.elements if isinstance(each, PlannedSegment) for entry in each.entries]


def test_chain_that_asks_is_planned_for_each_upstream_as_its_settings_say() -> None:
    found = {
        chain.name: (chain.upstreams, [(entry.name, entry.config) for entry in entries_of(chain)])
        for chain in several("fused")[1].chains
    }
    assert found == {
        "responses": (
            ("b",),
            [("tool_dispatch", LoopConfig()), ("chat_completions", ChatConfig(idle_timeout_s=10))],
        ),
        "responses@c": (("c",), [("tool_dispatch", LoopConfig()), ("upstream_round", AskingConfig())]),
        "responses@a": (
            ("a",),
            [
                ("tool_dispatch", LoopConfig()),
                ("upstream_round", AskingConfig(dialect="vllm", headers_timeout_s=30, idle_timeout_s=20)),
            ],
        ),
        "resources": (("c", "a"), [("resources", PLAIN)]),
        "strict": (
            ("a",),
            [("upstream_round", AskingConfig(dialect="openai", headers_timeout_s=30, idle_timeout_s=5))],
        ),
        "strict@b": (("b",), [("chat_completions", ChatConfig(idle_timeout_s=5))]),
        "theirs": (("b",), [("theirs", PLAIN)]),
    }


@pytest.mark.parametrize("placement", ["fused", "split"])
def test_each_route_to_a_chain_has_the_plan_of_its_upstream(placement: str) -> None:
    gateway, found = several(placement)
    chosen = {
        route.match.path or route.match.prefix: chain.name
        for route in gateway.routes
        if (chain := found.chain_of(gateway, route)) is not None
    }
    assert {path: chosen[path] for path in ("/b", "/c", "/strict/a", "/strict/b", "/theirs", "/stored")} == {
        "/b": "responses",
        "/c": "responses@c",
        "/strict/a": "strict",
        "/strict/b": "strict@b",
        "/theirs": "theirs",
        "/stored": "resources",
    }
    names = [segment.name for segment in found.segments]
    assert len(set(names)) == len(names)
    assert {chain.upstreams for _, chain in found.loops} == {("a",), ("b",), ("c",)}


entries_of_any_kind = st.sampled_from(
    [
        {"filter": "validate"},
        {"filter": "guard", "words": ["a"]},
        {"filter": "persist", "isolate": True},
        {"filter": "tool_dispatch"},
        {"filter": "upstream_round"},
        {"envoy": {"name": "lua", "typed_config": LUA}},
        {"ext_proc": {"address": "unix:/x"}},
    ]
)


@pytest.mark.parametrize(
    ("placement", "entries", "chained"),
    [
        ("fused", [{"filter": "validate"}, {"filter": "upstream_round"}], False),
        ("fused", [{"envoy": {"name": "lua", "typed_config": LUA}}, {"filter": "validate"}], False),
        ("split", [{"filter": "validate"}, {"filter": "upstream_round"}], True),
        ("fused", [{"filter": "validate", "isolate": True}, {"filter": "upstream_round"}], True),
        (
            "fused",
            [{"filter": "validate"}, {"envoy": {"name": "lua", "typed_config": LUA}}, {"filter": "upstream_round"}],
            True,
        ),
        ("fused", [{"ext_proc": {"address": "unix:/x"}}, {"filter": "validate"}], True),
        ("fused", [{"envoy": {"name": "theirs", "typed_config": EXT_PROC}}, {"filter": "validate"}], True),
    ],
)
def test_chain_with_several_ext_proc_filters_is_told_from_others(
    placement: str, entries: list[dict[str, Any]], chained: bool
) -> None:
    assert planned(placement, entries).chained == chained


chains = st.recursive(
    st.lists(entries_of_any_kind, min_size=1, max_size=5),
    lambda inner: st.tuples(st.lists(entries_of_any_kind, max_size=3), inner).map(
        lambda parts: [*parts[0], {"filter": "tool_dispatch", "loop": parts[1]}]
    ),
    max_leaves=4,
)


@settings(max_examples=50, deadline=None)
@pytest.mark.parametrize("placement", ["fused", "split"])
@given(entries=chains)
def test_any_chain_is_planned_whole_in_order_and_with_unique_names(
    placement: str, entries: list[dict[str, Any]]
) -> None:
    checked = gateway(placement, entries)
    whole = plan(checked, filters=FILTERS).chains[0]
    flat = list(flatten(checked.chains["responses"]))
    segments = [element for element in whole.elements if isinstance(element, PlannedSegment)]
    assert [entry.name for segment in segments for entry in segment.entries] == [
        entry.filter for entry in flat if isinstance(entry, FilterEntry)
    ]
    assert len({element.name for element in whole.elements}) == len(whole.elements)
    assert sum(len(segment.entries) for segment in segments) + len(whole.elements) - len(segments) == len(flat)
    if placement == "split":
        assert all(len(segment.entries) == 1 for segment in segments)
    assert [segment.is_first for segment in segments] == [index == 0 for index in range(len(segments))]
    for index, segment in enumerate(segments):
        names = {entry.name for entry in segment.entries}
        no_loop_above = not any(above.calls_below_again for above in segments[:index])
        assert segment.calls_below_again == ("tool_dispatch" in names or ("upstream_round" in names and no_loop_above))
        assert whole.elements[whole.elements.index(segment) + 1 :] == whole.below(segment.name).elements
    for upper, lower in zip(whole.elements, whole.elements[1:], strict=False):
        if placement == "fused" and isinstance(upper, PlannedSegment) and isinstance(lower, PlannedSegment):
            assert {"persist"} & {upper.entries[-1].name, lower.entries[0].name}
