"""The tool type alone, and in a turn: `pytest examples/acme-lookup`."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import ClassVar

import pytest
from acme_lookup import AcmeLookup

from attache_core.errors import ClientError
from attache_core.events.event import Event, terminal_event
from attache_core.json_codec import Json
from attache_core.testing.tool_contract import ToolTypeContract
from attache_core.tools.installed import installed_extensions
from attache_core.tools.tool_type import ToolType
from attache_core.tools.tool_types import ToolTypes
from attache_core.turn.loop import LoopLimits, run_tool_loop
from attache_core.types.request import validate_create
from attache_core.types.turn import TurnRequest

BOLTS: Json = {"type": "acme_lookup", "catalog": "bolts"}


class TestContract(ToolTypeContract):
    declaration: ClassVar = BOLTS
    arguments: ClassVar = {"part": "M4"}

    @pytest.fixture
    async def tool_type(self) -> ToolType:
        return AcmeLookup()


class Model:
    """Looks up a part, then answers."""

    def __init__(self, part: str) -> None:
        self.asked: list[Json] = []
        self._arguments = f'{{"part": "{part}"}}'

    async def __call__(self, turn: TurnRequest) -> AsyncGenerator[Event, None]:
        self.asked.append(turn.body)
        call = {"type": "function_call", "call_id": "c", "name": "acme_lookup", "arguments": self._arguments}
        said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "There."}]}
        output = [call] if len(self.asked) == 1 else [said]
        yield terminal_event({"id": "r", "status": "completed", "output": output, "usage": None})


@pytest.mark.parametrize(
    ("part", "status", "found"),
    [("M4", "completed", "0.08 EUR, in stock"), ("M5", "failed", "The catalog bolts has no such part.")],
)
async def test_part_is_looked_up_within_the_turn(part: str, status: str, found: str) -> None:
    model = Model(part)
    turn = TurnRequest({"model": "m", "input": "How much?", "tools": [BOLTS], "tool_choice": {"type": "acme_lookup"}})

    [end] = [event async for event in run_tool_loop(turn, model, ToolTypes([AcmeLookup()]), LoopLimits())]

    looked_up, _ = end.data["response"]["output"]
    assert (looked_up["type"], looked_up["status"], looked_up["found"]) == ("acme_lookup_call", status, found)
    assert end.data["response"]["tools"] == [BOLTS]
    assert model.asked[0]["tool_choice"] == {"type": "function", "name": "acme_lookup"}
    _, made, answered = model.asked[1]["input"]
    assert (made["arguments"], answered["output"]) == (f'{{"part": "{part}"}}', found)


def test_declaration_and_items_are_what_a_request_may_say() -> None:
    extensions = installed_extensions([AcmeLookup])
    item = {"type": "acme_lookup_call", "id": "item_1", "status": "completed", "found": "x"}
    validate_create({"model": "m", "input": [item], "tools": [BOLTS]}, extensions=extensions)
    with pytest.raises(ClientError) as refused:
        validate_create({"model": "m", "input": "x", "tools": [{**BOLTS, "catalog": 1}]}, extensions=extensions)
    assert refused.value.param == "tools[0].catalog"
    with pytest.raises(ClientError):
        validate_create({"model": "m", "input": "x", "tools": [BOLTS]})
