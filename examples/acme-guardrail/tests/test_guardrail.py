"""The filter alone, without Envoy: `pytest examples/acme-guardrail`."""

from __future__ import annotations

import pytest
from acme_guardrail import Guardrail, GuardrailConfig

from attache_core.testing.memory_store import MemoryStore
from attache_core.tools.mcp.servers import open_mcp_servers
from attache_core.tools.mcp.settings import McpSettings
from attache_filters.sdk import ClientError, Services, TurnRequest
from attache_filters.testing import answering, check_turn_filter, run_turn, text_events


async def guardrail() -> Guardrail:
    async with open_mcp_servers(McpSettings()) as mcp:
        return Guardrail(GuardrailConfig(blocked_words=("forbidden",)), Services(MemoryStore(), mcp))


async def test_guardrail_keeps_the_contract_of_filters() -> None:
    await check_turn_filter(await guardrail())


async def test_blocked_word_never_reaches_what_is_below() -> None:
    below = answering(text_events("Never said."))

    with pytest.raises(ClientError) as refused:
        await run_turn(await guardrail(), TurnRequest({"model": "m", "input": "a Forbidden thing"}), below)

    assert (refused.value.code, below.turns) == ("guardrail_blocked", [])
