"""The whole turn without Envoy, against the scripted model server over real HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from attache_core.errors import ClientError
from attache_core.events.event import Event
from attache_core.testing.memory_store import MemoryStore
from attache_core.testing.model_script import Reply, call, dies_after, function_calls, text
from attache_core.testing.model_server import ModelServer, running_model_server
from attache_core.tools.builtin import builtin_tool_types
from attache_core.tools.mcp.servers import open_mcp_servers
from attache_core.tools.mcp.settings import McpSettings
from attache_core.turn.compaction.seal import Seal
from attache_core.turn.compaction.settings import CompactionKey
from attache_core.turn.execute import Engine, execute
from attache_core.turn.inference import open_inference
from attache_core.types.turn import TurnRequest
from core.events.canonical_stream import check_stream

SEAL = Seal([CompactionKey.read("a2V5IG9mIHRoaXJ0eS10d28gYnl0ZXMgZm9yIHRlc3Q=")])


class Gateway:
    def __init__(self, engine: Engine, model: ModelServer) -> None:
        self.model = model
        self._engine = engine

    async def ask(self, **body: Any) -> list[Event]:
        turn = TurnRequest({"model": "m", **body})
        return [event async for event in execute(turn, self._engine)]


@pytest.fixture
async def gateway(request: pytest.FixtureRequest) -> AsyncIterator[Gateway]:
    script: tuple[Reply, ...] = request.param
    async with (
        running_model_server(script) as model,
        open_inference(model.url) as send,
        open_mcp_servers(McpSettings()) as mcp,
    ):
        yield Gateway(Engine(MemoryStore(), builtin_tool_types(mcp), send, seal=SEAL), model)


def scripted(*replies: Reply) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("gateway", [replies], indirect=True, ids=["script"])


FORECAST = {"type": "function", "name": "get_forecast", "parameters": {"type": "object", "properties": {}}}


@scripted(function_calls(call("get_forecast", {})), text("Snow."))
async def test_function_call_is_answered_in_a_continuation(gateway: Gateway) -> None:
    (first,) = await gateway.ask(input="Weather?", tools=[FORECAST])
    called = first.data["response"]["output"][0]
    output = {"type": "function_call_output", "call_id": called["call_id"], "output": "snow"}
    second = await gateway.ask(input=[output], previous_response_id=first.data["response"]["id"], stream=True)

    check_stream(second)
    assert second[-1].data["response"]["output"][0]["content"][0]["text"] == "Snow."
    assert [item["type"] for item in gateway.model.requests[1].body["input"]] == [
        "message",
        "function_call",
        "function_call_output",
    ]


@scripted(dies_after(3))
async def test_model_that_dies_midstream_ends_as_failed(gateway: Gateway) -> None:
    events = await gateway.ask(input="Hi", stream=True)

    check_stream(events)
    assert events[-1].data["response"]["error"]["code"] == "upstream_broke_off"


@scripted(text("A summary."), text("Yes."))
async def test_conversation_that_is_too_long_goes_on_from_a_summary(gateway: Gateway) -> None:
    (answer,) = await gateway.ask(
        input=[{"role": "user", "content": "word " * 1000}, {"role": "user", "content": "And?"}],
        context_management=[{"type": "compaction", "compact_threshold": 1000}],
    )

    assert [item["type"] for item in answer.data["response"]["output"]] == ["compaction", "message"]
    assert [item["content"] for item in gateway.model.requests[1].body["input"]] == ["A summary.", "And?"]


@scripted()
async def test_bad_request_asks_no_model(gateway: Gateway) -> None:
    with pytest.raises(ClientError, match="temperature"):
        await gateway.ask(input="Hi", temperature="hot")
    assert gateway.model.requests == []
