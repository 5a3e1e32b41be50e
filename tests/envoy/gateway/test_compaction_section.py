"""The section `compaction`: what it puts into the gateway, and what is said of one that cannot be used."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from attache_core.errors import ConfigError
from attache_core.secret import REVEALING
from attache_core.turn.compaction.settings import CompactionKey
from attache_envoy.gateway import Gateway, parse_gateway
from attache_envoy.gateway.entries import FilterEntry, flatten
from attache_filters.builtin.compact import Compact
from attache_filters.builtin.compact_endpoint import CompactEndpoint
from attache_filters.sdk.registry import FilterClass
from gateway_fakes import FILTERS

KEY = "a2V5IG9mIHRoaXJ0eS10d28gYnl0ZXMgZm9yIHRlc3Q="
KNOWN: Mapping[str, FilterClass] = {**FILTERS, "compact": Compact, "compact_endpoint": CompactEndpoint}


def parsed(text: str, environ: Mapping[str, str] | None = None) -> Gateway:
    return parse_gateway(f"upstream: http://h\n{text}", "gateway.yaml", filters=KNOWN, environ=environ or {})


def refusal(text: str) -> str:
    with pytest.raises(ConfigError) as refused:
        parsed(text)
    return refused.value.message


def names(gateway: Gateway, chain: str) -> list[str]:
    return [entry.filter for entry in flatten(gateway.chains[chain]) if isinstance(entry, FilterEntry)]


def test_keys_put_the_filter_into_the_loop_and_the_endpoint_before_the_other_routes() -> None:
    gateway = parsed(f"compaction: {{keys: ['{KEY}']}}")

    assert names(gateway, "responses")[-3:] == ["tool_dispatch", "compact", "upstream_round"]
    assert names(gateway, "compaction") == ["compact_endpoint", "upstream_round"]
    assert (gateway.routes[0].match.path, gateway.routes[0].chain) == ("/v1/responses/compact", "compaction")


def test_gateway_without_keys_has_none_of_it() -> None:
    gateway = parsed("")

    assert gateway.compaction is None
    assert "compact" not in names(gateway, "responses")
    assert "compaction" not in gateway.chains


def test_keys_come_from_the_environment_and_are_shown_to_workers_alone() -> None:
    gateway = parsed("compaction: {keys: ['${KEY}']}", {"KEY": KEY})

    assert gateway.compaction is not None
    assert gateway.compaction.keys == (CompactionKey.read(KEY),)
    assert KEY not in gateway.model_dump_json() + repr(gateway)
    assert Gateway.model_validate_json(gateway.model_dump_json(context={REVEALING: True})) == gateway


def test_chain_that_compacts_needs_keys() -> None:
    chains = "chains: {responses: [{filter: tool_dispatch, loop: [{filter: compact}, {filter: upstream_round}]}]}"

    assert refusal(chains) == (
        "gateway.yaml:2: chains.responses: compaction needs keys: add `compaction: {keys: [...]}`."
    )
    assert names(parsed(f"{chains}\ncompaction: {{keys: ['{KEY}']}}"), "responses")[1] == "compact"


@pytest.mark.parametrize(
    ("section", "says"),
    [
        ("{keys: []}", "compaction.keys: a list of at least one key is expected."),
        ("{keys: sesame}", "compaction.keys: a list of at least one key is expected."),
        (
            "{keys: [sesame]}",
            "compaction.keys[0]: a key is 32 random bytes in base64, such as `openssl rand -base64 32` prints.",
        ),
        (f"{{keys: ['{KEY}'], treshold: 3}}", "compaction.treshold: unknown key. Known keys: keys."),
    ],
)
def test_section_that_cannot_be_used_is_told_by_line_and_key(section: str, says: str) -> None:
    told = refusal(f"compaction: {section}")
    assert told.startswith("gateway.yaml:2: ")
    assert says in told
    assert "sesame" not in told
