"""The filters of compaction, without Envoy."""

from __future__ import annotations

import pytest

from attache_core.errors import ClientError, ConfigError
from attache_core.testing.memory_store import MemoryStore
from attache_core.tools.mcp.servers import open_mcp_servers
from attache_core.tools.mcp.settings import McpSettings
from attache_core.types.turn import TurnRequest
from attache_filters.builtin.compact import Compact, CompactConfig
from attache_filters.builtin.compact_endpoint import CompactEndpoint
from attache_filters.builtin.compaction_settings import CheckpointSettings
from attache_filters.builtin.validate import Validate, ValidateConfig
from attache_filters.sdk.filter import Services
from attache_filters.testing import answering, run_turn, text_events


async def test_filter_without_keys_is_not_made() -> None:
    async with open_mcp_servers(McpSettings()) as mcp:
        services = Services(MemoryStore(), mcp)
        with pytest.raises(ConfigError, match="section `compaction`"):
            Compact(CompactConfig(), services)
        with pytest.raises(ConfigError, match="section `compaction`"):
            CompactEndpoint(CheckpointSettings(), services)


async def test_request_for_compaction_is_refused_where_there_are_no_keys() -> None:
    asked = {"model": "m", "input": "Hi", "context_management": [{"type": "compaction", "compact_threshold": 1000}]}
    async with open_mcp_servers(McpSettings()) as mcp:
        validate = Validate(ValidateConfig(), Services(MemoryStore(), mcp))
        with pytest.raises(ClientError) as refused:
            await run_turn(validate, TurnRequest(asked), answering(text_events("Never said.")))
    assert (refused.value.code, refused.value.param) == ("unsupported_parameter", "context_management")
