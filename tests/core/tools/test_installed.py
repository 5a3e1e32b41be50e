"""Tool types of other packages, found by their entry points."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from typing import ClassVar

import pytest

from attache_core.errors import AttacheError, ClientError, ConfigError
from attache_core.events.event import Event, terminal_event
from attache_core.events.model_events import ItemAdded, ItemDone, ModelEvent
from attache_core.json_codec import Json
from attache_core.tools.client.function import FunctionType
from attache_core.tools.function_tool import function_tool
from attache_core.tools.gateway_tool import CallMade, CallResult, GatewayTool
from attache_core.tools.installed import ENTRY_POINT_GROUP, installed_extensions, load_tool_types
from attache_core.tools.registry import build_registry
from attache_core.tools.tool_type import Offer, OfferedTool, ToolType
from attache_core.tools.tool_types import ToolTypes
from attache_core.turn.loop import LoopLimits, run_tool_loop
from attache_core.types.request import validate_create
from attache_core.types.shape import Shape
from attache_core.types.tools import runnable
from attache_core.types.turn import TurnRequest


class FileSearch(ToolType):
    shapes = {"file_search": Shape}  # noqa: RUF012 - declared as ClassVar in the base class

    async def offer(self, declaration: Json) -> Offer:
        return Offer()


class OtherFileSearch(FileSearch):
    """Reads the same declarations."""


class Impostor(FunctionType):
    """Reads what the gateway itself reads."""


def entry(name: str, target: str) -> EntryPoint:
    return EntryPoint(name, target if ":" in target else f"{__name__}:{target}", ENTRY_POINT_GROUP)


def test_entry_point_leads_to_a_tool_type() -> None:
    assert load_tool_types([entry("search", "FileSearch")]) == {"search": FileSearch}
    assert load_tool_types([]) == {}


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ([entry("a", "no.such.module:X")], "cannot be loaded"),
        ([entry("a", "NoSuchName")], "cannot be loaded"),
        ([entry("a", "Shape")], "is not a ToolType class"),
        ([entry("a", "FileSearch"), entry("a", "OtherFileSearch")], "Two tool types are named 'a'"),
        ([entry("a", "FileSearch"), entry("b", "OtherFileSearch")], "reads 'file_search' declarations, as 'a' does"),
        ([entry("a", "Impostor")], "reads 'function' declarations, as the gateway itself does"),
    ],
)
def test_entry_point_that_cannot_be_used_says_why(entries: list[EntryPoint], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load_tool_types(entries)


def test_installed_type_that_openai_hosts_runs_here() -> None:
    extensions = installed_extensions([FileSearch])
    tools: list[Json] = [{"type": "file_search"}, {"type": "code_interpreter"}]
    body: Json = {"model": "m", "input": "Hi", "tools": tools[:1], "tool_choice": {"type": "file_search"}}

    validate_create(body, extensions=extensions)
    assert runnable(tools, extensions) == (tools[:1], ["code_interpreter"])


class Refusing(ToolType):
    shapes: ClassVar = {"refusing": Shape}

    async def offer(self, declaration: Json) -> Offer:
        raise ClientError(f"There is no {declaration['about']}.", param="tools")


async def test_declaration_that_a_type_refuses_while_it_is_read_answers_400() -> None:
    refused = [{"type": "refusing", "about": name} for name in ("tea", "milk")]
    with pytest.raises(ClientError, match=r"^There is no tea\.$"):
        await build_registry(refused, ToolTypes([Refusing()]))


CANARY = "canary-7f3a"


@dataclass(frozen=True)
class Broken(GatewayTool):
    """Fails where it is told to."""

    where: str

    async def call(self, arguments: Json) -> CallResult:
        return CallResult("ok")

    def begun(self, call: CallMade) -> list[ModelEvent]:
        self._fail_at("begun")
        return [ItemAdded(call.key, {"type": "broken_call", "status": "in_progress"})]

    def ended(self, call: CallMade, result: CallResult) -> list[ModelEvent]:
        self._fail_at("ended")
        return [ItemDone(call.key, {"type": "broken_call", "status": "completed"})]

    def _fail_at(self, where: str) -> None:
        if self.where == where:
            raise KeyError(CANARY)


class BrokenType(ToolType):
    shapes: ClassVar = {"broken": Shape}

    async def offer(self, declaration: Json) -> Offer:
        if declaration["where"] == "offer":
            raise KeyError(CANARY)
        function = function_tool("broken", None, None)
        return Offer((OfferedTool("broken", None, "broken", function, Broken(declaration["where"])),))


async def calls_it(turn: TurnRequest) -> AsyncGenerator[Event, None]:
    call = {"type": "function_call", "call_id": "c", "name": "broken", "arguments": "{}"}
    yield terminal_event({"id": "r", "status": "completed", "output": [call], "usage": None})


@pytest.mark.parametrize("where", ["offer", "begun", "ended"])
@pytest.mark.parametrize("stream", [False, True], ids=["json", "sse"])
async def test_bug_in_a_tool_type_fails_its_turn_and_its_text_is_kept_nowhere(
    where: str, stream: bool, caplog: pytest.LogCaptureFixture
) -> None:
    turn = TurnRequest({"model": "m", "input": "x", "tools": [{"type": "broken", "where": where}], "stream": stream})
    events: list[Event] = []
    with suppress(AttacheError):
        events += [event async for event in run_tool_loop(turn, calls_it, ToolTypes([BrokenType()]), LoopLimits())]

    assert ([event.type for event in events[-1:]] == ["response.failed"]) is (stream and where == "ended")
    assert CANARY not in caplog.text + str(events)
    assert "KeyError" in caplog.text
