"""The tool type `shell` where it is granted: the contract of tool types, declarations, and the end of a turn."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import ClassVar

import pytest

from attache_core.errors import ClientError
from attache_core.events.event import Event, terminal_event
from attache_core.json_codec import Json
from attache_core.testing.tool_contract import ToolTypeContract
from attache_core.tools.installed import installed_extensions
from attache_core.tools.shell.settings import ShellSettings
from attache_core.tools.shell.tool_type import GrantedShellType
from attache_core.tools.tool_type import ToolType
from attache_core.tools.tool_types import ToolTypes
from attache_core.turn.loop import LoopLimits, run_tool_loop
from attache_core.types.extensions import NO_EXTENSIONS
from attache_core.types.tools import runnable, validate_tools
from attache_core.types.turn import TurnRequest

CONTAINER: Json = {"type": "shell", "environment": {"type": "container_auto"}}
REFERENCE: Json = {"type": "shell", "environment": {"type": "container_reference", "container_id": "cntr_1"}}
LOCAL: Json = {"type": "shell", "environment": {"type": "local"}}
GRANTED = installed_extensions([GrantedShellType])


class TestContract(ToolTypeContract):
    declaration: ClassVar = CONTAINER
    arguments: ClassVar = {"commands": ["echo tea"]}

    @pytest.fixture
    async def tool_type(self, tmp_path: Path) -> ToolType:
        return GrantedShellType(ShellSettings(folder=tmp_path))


class TestContractOfTheClients(ToolTypeContract):
    declaration: ClassVar = LOCAL
    arguments: ClassVar = {"commands": ["echo tea"]}

    @pytest.fixture
    async def tool_type(self) -> ToolType:
        return GrantedShellType()


@pytest.mark.parametrize("tool", [CONTAINER, REFERENCE])
def test_container_is_hosted_by_nobody_here_unless_it_is_granted(tool: Json) -> None:
    assert runnable([tool, LOCAL], NO_EXTENSIONS) == ([LOCAL], ["shell"])
    assert runnable([tool, LOCAL], GRANTED) == ([tool, LOCAL], [])
    with pytest.raises(ClientError) as refused:
        validate_tools([tool])
    assert refused.value.param == "tools[0].environment.type"


def test_container_that_was_is_refused_with_what_would_be_right() -> None:
    validate_tools([CONTAINER], GRANTED)
    with pytest.raises(ClientError) as refused:
        validate_tools([REFERENCE], GRANTED)
    assert (refused.value.code, refused.value.param) == ("unsupported_value", "tools[0].environment.type")
    assert refused.value.message == (
        "The gateway keeps no container after a turn: set 'environment' to {'type': 'container_auto'}."
    )


def test_two_shells_are_refused() -> None:
    with pytest.raises(ClientError, match="only once"):
        ToolTypes([GrantedShellType()]).check([CONTAINER, LOCAL])


class Model:
    """Calls the shell, then fails or answers."""

    def __init__(self, last: Event | Exception) -> None:
        self._last: Event | Exception | None = last
        self._asked = 0

    async def __call__(self, turn: TurnRequest) -> AsyncGenerator[Event, None]:
        del turn
        self._asked += 1
        if self._asked == 1:
            call = {"type": "function_call", "call_id": "c", "name": "shell", "arguments": '{"commands": ["touch f"]}'}
            yield terminal_event({"id": "r", "status": "completed", "output": [call], "usage": None})
        elif isinstance(self._last, Event):
            yield self._last
        elif self._last is not None:
            raise self._last


ENDED = terminal_event({"id": "r", "status": "completed", "output": [], "usage": None})


async def events_of_a_turn(folder: Path, last: Event | Exception) -> list[Event]:
    types = ToolTypes([GrantedShellType(ShellSettings(folder=folder))])
    turn = TurnRequest({"model": "m", "input": "Go", "tools": [CONTAINER]})
    return [event async for event in run_tool_loop(turn, Model(last), types, LoopLimits())]


def files(folder: Path) -> list[Path]:
    return list(folder.iterdir())


async def test_folder_goes_at_the_end_of_the_turn(tmp_path: Path) -> None:
    [end] = await events_of_a_turn(tmp_path, ENDED)
    made, output = end.data["response"]["output"]
    assert (made["type"], output["type"], output["call_id"]) == ("shell_call", "shell_call_output", made["call_id"])
    assert files(tmp_path) == []


async def test_folder_goes_with_a_turn_that_fails(tmp_path: Path) -> None:
    with pytest.raises(ClientError, match="No"):
        await events_of_a_turn(tmp_path, ClientError("No.", param=None, code="no"))
    assert files(tmp_path) == []
