from __future__ import annotations

import pytest

from attache_core.errors import ClientError
from attache_core.json_codec import Json
from attache_core.turn.pending_calls import check_calls


def called(call_id: str, kind: str = "function_call") -> Json:
    return {"type": kind, "call_id": call_id, "name": "f", "arguments": "{}"}


def output(call_id: str, kind: str = "function_call_output") -> Json:
    return {"type": kind, "call_id": call_id, "output": "x"}


@pytest.mark.parametrize(
    "items",
    [
        [],
        [{"role": "user", "content": "Hi"}],
        [called("a"), output("a")],
        [called("a"), called("b"), output("b"), output("a")],
        [called("a", "custom_tool_call"), output("a", "custom_tool_call_output")],
        [called("a"), output("a"), called("a"), output("a")],
        [{"type": "mcp_call", "id": "mcp_1", "output": "x"}],
    ],
)
def test_calls_that_are_all_answered_are_accepted(items: list[Json]) -> None:
    check_calls(items)


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ([called("a")], "No tool output found for function call a."),
        ([called("a", "custom_tool_call")], "No tool output found for custom tool call a."),
        ([output("a")], "No tool call found for function call output with call_id a."),
        ([output("a"), called("a")], "No tool call found for function call output with call_id a."),
        ([called("a"), output("a"), output("a")], "No tool call found for function call output with call_id a."),
        (
            [called("a"), output("a", "custom_tool_call_output")],
            "No tool call found for custom tool call output with call_id a.",
        ),
    ],
)
def test_call_or_output_without_its_partner_answers_400_naming_it(items: list[Json], message: str) -> None:
    with pytest.raises(ClientError) as refused:
        check_calls(items)
    assert (refused.value.http_status, refused.value.message, refused.value.param) == (400, message, "input")
