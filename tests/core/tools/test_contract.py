"""Every built-in tool type that needs nobody else keeps the contract that is asked of other packages' types."""

from __future__ import annotations

from typing import ClassVar

import pytest

from attache_core.json_codec import Json
from attache_core.testing.tool_contract import ToolTypeContract
from attache_core.tools.client.apply_patch import ApplyPatchType
from attache_core.tools.client.custom import CustomType
from attache_core.tools.client.function import FunctionType
from attache_core.tools.client.local_shell import LocalShellType
from attache_core.tools.client.shell import ShellType
from attache_core.tools.client.tool_search import ToolSearchType
from attache_core.tools.tool_type import ToolType


class TestFunction(ToolTypeContract):
    declaration: ClassVar[Json] = {"type": "function", "name": "f"}

    @pytest.fixture
    async def tool_type(self) -> ToolType:
        return FunctionType()


class TestCustom(ToolTypeContract):
    declaration: ClassVar[Json] = {"type": "custom", "name": "c"}
    arguments: ClassVar[Json] = {"input": "x"}

    @pytest.fixture
    async def tool_type(self) -> ToolType:
        return CustomType()


class TestShell(ToolTypeContract):
    declaration: ClassVar[Json] = {"type": "shell"}
    arguments: ClassVar[Json] = {"commands": ["ls"]}

    @pytest.fixture
    async def tool_type(self) -> ToolType:
        return ShellType()


class TestLocalShell(ToolTypeContract):
    declaration: ClassVar[Json] = {"type": "local_shell"}
    arguments: ClassVar[Json] = {"command": ["ls"]}

    @pytest.fixture
    async def tool_type(self) -> ToolType:
        return LocalShellType()


class TestApplyPatch(ToolTypeContract):
    declaration: ClassVar[Json] = {"type": "apply_patch"}
    arguments: ClassVar[Json] = {"type": "delete_file", "path": "a"}

    @pytest.fixture
    async def tool_type(self) -> ToolType:
        return ApplyPatchType()


class TestToolSearch(ToolTypeContract):
    declaration: ClassVar[Json] = {"type": "tool_search", "execution": "client"}
    arguments: ClassVar[Json] = {"query": "x"}

    @pytest.fixture
    async def tool_type(self) -> ToolType:
        return ToolSearchType()
