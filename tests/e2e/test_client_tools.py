"""Tools of the client that are no functions, through a real Envoy, in front of a server that knows functions only."""

from __future__ import annotations

import pytest

from attache_core.json_codec import Json
from attache_core.testing.model_script import call, function_calls, text
from e2e.stage import Stage, check

CASES: list[tuple[Json, str, Json, Json, Json]] = [
    ({"type": "custom", "name": "say"}, "say", {"input": "a\n"},
     {"type": "custom_tool_call", "name": "say", "input": "a\n"},
     {"type": "custom_tool_call_output", "output": "done"}),
    ({"type": "namespace", "name": "files", "description": "d", "tools": [{"type": "function", "name": "open"}]},
     "files__open", {"path": "a"},
     {"type": "function_call", "name": "open", "namespace": "files"},
     {"type": "function_call_output", "output": "done"}),
    ({"type": "shell", "environment": {"type": "local"}}, "shell", {"commands": ["ls"]},
     {"type": "shell_call", "action": {"commands": ["ls"], "max_output_length": None, "timeout_ms": None}},
     {"type": "shell_call_output", "output": [{"stdout": "a", "stderr": "", "outcome": {"type": "timeout"}}]}),
    ({"type": "local_shell"}, "local_shell", {"command": ["ls"]},
     {"type": "local_shell_call"}, {"type": "local_shell_call_output", "output": "a"}),
    ({"type": "apply_patch"}, "apply_patch", {"type": "delete_file", "path": "a"},
     {"type": "apply_patch_call", "operation": {"type": "delete_file", "path": "a"}},
     {"type": "apply_patch_call_output", "status": "completed"}),
    ({"type": "tool_search", "execution": "client"}, "tool_search", {"query": "tea"},
     {"type": "tool_search_call", "arguments": {"query": "tea"}, "execution": "client"},
     {"type": "tool_search_output", "tools": [{"type": "function", "name": "brew", "defer_loading": True}]}),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0]["type"])
async def test_call_comes_in_the_shape_of_its_type_and_is_continued_by_its_output(
    stage: Stage, stream: bool, case: tuple[Json, str, Json, Json, Json]
) -> None:
    tool, name, arguments, item, output = case
    stage.model.play(function_calls(call(name, arguments)), text("Done."))

    first = check(await stage.ask(input="Go", tools=[tool], stream=stream))
    [called] = first.body["output"]
    answered = [{**output, "call_id": called["call_id"]}]
    if output["type"] == "local_shell_call_output":
        answered = [{**output, "id": called["call_id"]}]
    second = check(await stage.ask(input=answered, previous_response_id=first.body["id"], stream=stream))

    assert {**called, **item, "status": "completed"} == called
    assert (first.body["status"], second.text) == ("completed", "Done.")
    told, continued = stage.model.asked
    assert [(each["type"], each["name"]) for each in told["tools"]] == [("function", name)]
    kinds = [each["type"] for each in continued["input"]]
    assert kinds == ["message", "function_call", "function_call_output"]
    assert continued["input"][1]["name"] == (name if tool["type"] != "namespace" else "files__open")
    loaded = [each["name"] for each in continued.get("tools", ())]
    assert loaded == (["brew"] if tool["type"] == "tool_search" else [])
    assert [each["name"] for each in second.body["tools"]] == loaded
