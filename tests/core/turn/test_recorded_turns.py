"""Every recorded stream, of whichever server, is one valid stream behind the tool loop as well."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import pytest

from attache_core.events.event import Event
from attache_core.json_codec import Json
from attache_core.tools.mcp.servers import McpServers, open_mcp_servers
from attache_core.tools.mcp.settings import McpSettings
from core.events.canonical_stream import check_stream
from core.events.recordings import Recorded, all_recorded
from core.turn.test_openai_sequences import both_ways, turn_of

OTHERS = [pytest.param(answer, id=answer.name) for answer in all_recorded(stream=True, openai=False)]


@pytest.fixture
async def mcp() -> AsyncIterator[McpServers]:
    async with open_mcp_servers(McpSettings()) as servers:
        yield servers


@pytest.mark.parametrize("answer", OTHERS)
async def test_recorded_stream_is_one_valid_stream_with_the_same_items_after_the_loop(
    answer: Recorded, mcp: McpServers
) -> None:
    assert answer.stream is not None
    one_round, looped = await both_ways(turn_of(answer.request), answer.stream, mcp)
    for events in (one_round, looped):
        check_stream(events)
    assert [event.type for event in looped] == [event.type for event in one_round]
    assert said(looped) == said(one_round)
    assert looped[-1].data["response"]["usage"] == one_round[-1].data["response"]["usage"]


def said(events: Sequence[Event]) -> list[Json]:
    """The final items without their ids, which each run makes anew."""
    return [
        {name: value for name, value in item.items() if name not in ("id", "call_id")}
        for item in events[-1].data["response"]["output"]
    ]
