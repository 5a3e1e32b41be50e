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
        [called("a", "shell_call"), output("a", "shell_call_output")],
        [called("a", "local_shell_call"), {"type": "local_shell_call_output", "id": "a", "output": "x"}],
        [called("a", "local_shell_call"), {**output("a", "local_shell_call_output"), "id": "lsho_1"}],
        [called("a", "local_shell_call"), output("a")],
        [called("a", "apply_patch_call"), output("a", "apply_patch_call_output")],
        [called("a", "computer_call"), output("a", "computer_call_output")],
        [{"type": "mcp_call", "id": "mcp_1", "output": "x"}],
        [{"type": "web_search_call", "id": "ws_1"}],
        [{"type": "tool_search_call", "call_id": None}, {"type": "tool_search_output", "call_id": None}],
    ],
)
def test_calls_that_are_all_answered_are_accepted(items: list[Json]) -> None:
    check_calls(items)


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ([called("a")], "No tool output found for function call a."),
        ([called("a", "custom_tool_call")], "No tool output found for custom tool call a."),
        ([called("a", "shell_call")], "No tool output found for shell call a."),
        ([called("a", "tool_search_call")], "No tool output found for tool search call a."),
        (
            [{"type": "local_shell_call_output", "id": "a", "output": "x"}],
            "No tool call found for local shell call output with call_id a.",
        ),
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
