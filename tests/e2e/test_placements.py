"""Split and fused placement: other processes and streams, the same answers; and what Envoy was told to run."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from attache_core.json_codec import Json
from attache_core.testing.model_script import Reply, call, reasoning_then, says, stream_error, text
from e2e.conftest import PLACEMENTS
from e2e.stage import Stage, open_stage

SCRIPTS: dict[str, tuple[Reply, ...]] = {
    "text": (text("Hello there."),),
    "reasoning": (reasoning_then("Hm.", "Hello."),),
    "two rounds": (says("One moment.", call("echo", {"text": "hi"})), text("Echoed.")),
    "mixed round": (says(call("echo", {"text": "hi"}), call("get_forecast", {"city": "Oslo"})),),
    "failure": (stream_error("Out of memory."),),
}

BOTH = pytest.mark.placements("split", "fused")
FORECAST = {"type": "function", "name": "get_forecast", "parameters": {"type": "object", "properties": {}}}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def both(tmp_path_factory: Any) -> AsyncIterator[list[Stage]]:
    async with (
        open_stage(PLACEMENTS[0], tmp_path_factory.mktemp("a")) as one,
        open_stage(PLACEMENTS[1], tmp_path_factory.mktemp("b")) as other,
    ):
        yield [one, other]


@BOTH
async def test_both_placements_give_the_same_decoded_events(both: list[Stage]) -> None:
    for name, script in SCRIPTS.items():
        seen = []
        for stage in both:
            stage.model.play(*script)
            answer = await stage.ask(input="Go", tools=[stage.mcp_tool(), FORECAST], stream=True)
            seen.append(comparable(answer.events))
        assert seen[0] == seen[1], name


@BOTH
async def test_both_placements_give_the_same_json(both: list[Stage]) -> None:
    for name, script in list(SCRIPTS.items())[:-1]:
        seen = []
        for stage in both:
            stage.model.play(*script)
            answer = await stage.ask(input="Go", tools=[stage.mcp_tool(), FORECAST])
            seen.append(comparable([answer.body]))
        assert seen[0] == seen[1], name


@BOTH
async def test_split_has_one_ext_proc_for_each_hosted_filter_and_fused_has_one(both: list[Stage]) -> None:
    for stage in both:
        filters = await ext_proc_filters(stage, "gateway")
        chain = [name.rpartition("/")[2] for name in filters if "/responses/" in name]
        if stage.placement == "split":
            assert chain == ["validate", "persist", "rehydrate", "tool_dispatch", "upstream_round"]
            assert [name.rpartition("/")[2] for name in await ext_proc_filters(stage, "loop")] == ["upstream_round"]
        else:
            assert len(chain) == 1
            assert await ext_proc_filters(stage, "loop") == []


async def ext_proc_filters(stage: Stage, listener: str) -> list[str]:
    """The names of the ext_proc filters that Envoy itself says it runs on listeners whose name begins so."""
    dump = await stage.gateway.admin.config_dump()
    chains = [
        http_filter
        for section in dump["configs"]
        for entry in section.get("static_listeners", ())
        if entry["listener"]["name"].startswith(listener)
        for filter_chain in entry["listener"]["filter_chains"]
        for network_filter in filter_chain["filters"]
        for http_filter in network_filter["typed_config"]["http_filters"]
    ]
    return [http_filter["name"] for http_filter in chains if "ext_proc" in http_filter["name"]]


def comparable(events: list[Json]) -> Any:
    """Events with ids by order of first use, without times and the stages' own addresses."""
    ids: dict[str, str] = {}

    def plain(value: Any, name: str = "") -> Any:
        if isinstance(value, dict):
            return {key: plain(inner, key) for key, inner in value.items()}
        if isinstance(value, list):
            return [plain(inner) for inner in value]
        if name == "call_id":
            return ids.setdefault(value, f"call_{len(ids)}")
        if name in ("id", "item_id"):
            return ids.setdefault(value, f"{value.partition('_')[0]}_{len(ids)}")
        if name == "obfuscation":
            return len(value)
        if name in ("created_at", "completed_at") and value is not None:
            return 0
        return "url" if name == "server_url" else value

    return plain(events)


@pytest.mark.placements("split")  # in fused placement, too, this chain has several ext_proc filters
async def test_native_filter_and_foreign_ext_proc_may_stand_between_hosted_ones(placement: str, tmp_path: Path) -> None:
    async with open_stage(placement, tmp_path, gateway_yaml=NATIVE_IN_BETWEEN) as stage:
        stage.model.play(text("Hello."), text("Hello again."))

        plain = await stage.ask(input="Hi")
        streamed = await stage.ask(input="Hi", stream=True)

        assert (plain.text, streamed.text) == ("Hello.", "Hello again.")
        assert [request.headers.get("x-team") for request in stage.model.requests] == ["platform", "platform"]


NATIVE_IN_BETWEEN = """
chains:
  responses:
    - filter: validate
    - filter: persist
    - envoy:
        name: envoy.filters.http.lua
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua
          default_source_code:
            inline_string: |
              function envoy_on_request(handle)
                handle:headers():add("x-team", "platform")
              end
    - filter: rehydrate
    - filter: tool_dispatch
      loop:
        - filter: upstream_round
"""
