"""What every tool type does alike: a suite that a tool type's own tests inherit.

    class TestMyType(ToolTypeContract):
        @pytest.fixture
        async def tool_type(self) -> ToolType: ...    # open, ready for a turn

        declaration = {"type": "my_type"}             # one that is valid
        arguments = {"query": "tea"}                  # what a model would call its first function with

Run by pytest with pytest-asyncio in auto mode; importing this module needs neither. For a gateway-executed tool each
test makes one call: let it reach a fake of whatever it reaches.
"""

from __future__ import annotations

from typing import ClassVar

from attache_core.events.model_events import Delta, ItemAdded, ItemDone, ModelEvent
from attache_core.json_codec import Json, decode, encode
from attache_core.tools.call_errors import execution_error
from attache_core.tools.gateway_tool import CallMade, CallProgress, CallResult, GatewayTool
from attache_core.tools.history import model_input
from attache_core.tools.names import is_valid_name
from attache_core.tools.registry import ToolRegistry, build_registry
from attache_core.tools.tool_type import ClientCall, OfferedTool, ToolType
from attache_core.tools.tool_types import ToolTypes
from attache_core.types.items import ITEM_TYPES

FAILED = CallResult(None, execution_error([{"type": "text", "text": "It broke."}]))


class ToolTypeContract:
    """The suite; a subclass provides the fixture `tool_type` and says `declaration` and `arguments`."""

    declaration: ClassVar[Json]
    arguments: ClassVar[Json] = {}

    async def test_functions_have_valid_names_and_schemas(self, tool_type: ToolType) -> None:
        """A model can be told of them, and the declaration is not changed."""
        before = encode(self.declaration)
        registry = await self._registry(tool_type)
        assert encode(self.declaration) == before
        for function in registry.function_tools:
            assert function["type"] == "function"
            assert is_valid_name(function["name"]), f"{function['name']!r} is no function's name"
            assert isinstance(function.get("parameters") or {}, dict)
            assert decode(encode(function)) == function

    async def test_two_offers_are_the_same(self, tool_type: ToolType) -> None:
        """What a model is told must not change between turns, or no prompt cache is ever warm."""
        first, second = await self._registry(tool_type), await self._registry(tool_type)
        assert first.function_tools == second.function_tools

    async def test_what_a_response_shows_is_json_with_the_type(self, tool_type: ToolType) -> None:
        """It may show less than was declared, but never another type."""
        shown = tool_type.public(self.declaration)
        assert shown["type"] == self.declaration["type"]
        assert decode(encode(shown)) == shown

    async def test_call_that_succeeds_is_an_item_added_and_done(self, tool_type: ToolType) -> None:
        """A gateway-executed call ends in a result; a client-executed one in the public item of its type.

        Where call and output are two items, each has a whole life of its own.
        """
        await self._items_of_a_call(tool_type, None)

    async def test_progress_of_a_call_is_told_by_events_of_its_item(self, tool_type: ToolType) -> None:
        """Whatever is reported; no item is added or done by it."""
        for tool in (await self._registry(tool_type)).tools.values():
            if isinstance(tool.binding, GatewayTool):
                made, reported = CallMade("call", "{}", "call_1"), (CallProgress(1), CallProgress(2.5, 10, "Half-way."))
                told = [event for progress in reported for event in tool.binding.progressed(made, progress)]
                check_lives([*tool.binding.begun(made), *told, *tool.binding.ended(made, FAILED)])

    async def test_call_that_fails_is_an_item_added_and_done(self, tool_type: ToolType) -> None:
        """Also a call that the gateway refused or that timed out, of which the tool knows nothing."""
        await self._items_of_a_call(tool_type, FAILED)

    async def test_arguments_that_are_no_json_are_an_item_all_the_same(self, tool_type: ToolType) -> None:
        """A model may write anything; a call is then never executed, but it is shown."""
        for tool in (await self._registry(tool_type)).tools.values():
            for written in ("", "{'a': 1", "[1]", '"\\ud83d"'):
                check_lives(_shown(tool, written, FAILED))

    async def test_item_is_told_to_the_model_as_calls_with_their_outputs(self, tool_type: ToolType) -> None:
        """What a call leaves behind is told in the next round, under the name that the model knows."""
        registry = await self._registry(tool_type)
        for result in (None, FAILED):
            items = await self._items_of_a_call(tool_type, result)
            told = model_input([{**item, "id": f"item_{number}"} for number, item in enumerate(items)], registry)
            for item in items:
                assert item["type"] in registry.tellers, f"an item of type {item['type']!r} needs a teller"
            assert {each["type"] for each in told} <= {"function_call", "function_call_output"}
            assert {each["name"] for each in told if each["type"] == "function_call"} <= registry.tools.keys()
            assert len({each["call_id"] for each in told}) == 1

    async def _registry(self, tool_type: ToolType) -> ToolRegistry:
        registry = await build_registry([self.declaration], ToolTypes([tool_type]))
        assert registry.tools, "it offers no tool"
        return registry

    async def _items_of_a_call(self, tool_type: ToolType, result: CallResult | None) -> list[Json]:
        """The finished items of a call of its first tool: with this result, or with that of running it."""
        registry = await self._registry(tool_type)
        tool = next(iter(registry.tools.values()))
        async with registry.serving():
            if isinstance(tool.binding, GatewayTool) and result is None:
                result = await tool.binding.call_reporting(self.arguments, lambda _: None)
                assert result.error is None or result.output is None
        items = check_lives(_shown(tool, encode(self.arguments).decode(), result or FAILED))
        for item in items:
            known = item["type"] in ITEM_TYPES or item["type"] in tool_type.tellers
            assert known, f"{item['type']!r} is no item of the API and has no teller"
        return items


def _shown(tool: OfferedTool, arguments: str, result: CallResult) -> list[ModelEvent]:
    """What the client sees of a call."""
    made = CallMade("call", arguments, "call_1")
    if isinstance(tool.binding, GatewayTool):
        return [*tool.binding.begun(made), *tool.binding.ended(made, result)]
    call: Json = {"type": "function_call", "call_id": "call_1", "name": tool.name}
    reader: ClientCall | None = tool.binding.new_call() if tool.binding.new_call is not None else None
    said: list[ModelEvent] = [
        ItemAdded("call", {**call, "status": "in_progress", "arguments": ""}),
        Delta("call", None, "arguments", arguments),
        ItemDone("call", {**call, "status": "completed", "arguments": arguments}),
    ]
    return said if reader is None else [shown for event in said for shown in reader.feed(event)]


def check_lives(shown: list[ModelEvent]) -> list[Json]:
    """The finished items, each of which lives before the next begins; the first has the call's key, which that of every
    further one begins with. Raises AssertionError."""
    lives: list[list[ModelEvent]] = []
    for event in shown:
        if isinstance(event, ItemAdded) or not lives:
            lives.append([])
        lives[-1].append(event)
    assert lives, "nothing is shown of a call"
    keys = [getattr(life[0], "key", "") for life in lives]
    assert len(set(keys)) == len(keys)
    assert all(key.startswith(keys[0]) for key in keys)
    return [check_life(life) for life in lives]


def check_life(shown: list[ModelEvent]) -> Json:
    """The finished item of a whole life: added first, done last, one type, one key. Raises AssertionError."""
    first, last = shown[0], shown[-1]
    assert isinstance(first, ItemAdded), f"the life of an item begins with {first!r}"
    assert isinstance(last, ItemDone), f"the life of an item ends with {last!r}"
    assert first.item["type"] == last.item["type"]
    assert sum(isinstance(event, (ItemAdded, ItemDone)) for event in shown) == 2
    assert {getattr(event, "key", None) for event in shown} == {first.key}
    encode([first.item, last.item])
    return last.item
