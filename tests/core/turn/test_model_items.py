from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openai.types.responses.response_input_item_param import ResponseInputItemParam
from pydantic import TypeAdapter

from attache_core.errors import ClientError
from attache_core.json_codec import Json, decode
from attache_core.tools.builtin import BUILTIN_TELLERS
from attache_core.turn.model_items import PASSED, model_items
from attache_core.types.ids import item_id, item_prefix
from attache_core.types.items import ITEM_TYPES, ORCHESTRATION_ITEMS

GRAMMAR = re.compile(r"[A-Za-z0-9_-]{1,64}")
SERVER = TypeAdapter(ResponseInputItemParam)
"""What vLLM checks an input item with, among others."""

TEXT = {"type": "output_text", "text": "Hello.", "annotations": []}
SAID: Json = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "status": "completed",
    "content": [{**TEXT, "logprobs": []}],
}
THOUGHT: Json = {
    "id": "rs_1",
    "type": "reasoning",
    "summary": [],
    "content": [{"type": "reasoning_text", "text": "Hm."}],
}
CALL: Json = {"id": "fc_1", "type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
OUTPUT: Json = {"type": "function_call_output", "call_id": "c", "output": "x"}


def told(*items: Json) -> list[Json]:
    return model_items(items)


@pytest.mark.parametrize(
    "item",
    [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Hello."},
        {"id": "msg_1", "type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Hi"}]},
        {"role": "user", "content": [{"type": "input_image", "image_url": "data:,", "detail": "low"}], "phase": None},
        SAID,
        {**SAID, "status": "incomplete"},
        THOUGHT,
        CALL,
        {**CALL, "status": "completed", "namespace": "n"},
        OUTPUT,
        {**OUTPUT, "id": "fco_1", "output": [{"type": "input_text", "text": "x"}]},
        {"type": "custom_tool_call", "id": "ctc_1", "call_id": "c", "name": "patch", "input": "*** Begin\n"},
        {"type": "custom_tool_call_output", "call_id": "c", "output": "done"},
        {"type": "tool_search_call", "call_id": None, "arguments": {"query": "tea"}, "execution": "server"},
        {"type": "tool_search_output", "id": "tso_1", "call_id": "c", "tools": [], "execution": "client"},
    ],
)
def test_item_that_servers_know_goes_on_as_it_came(item: Json) -> None:
    assert told(item) == [item]
    SERVER.validate_python(item)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"role": "assistant", "content": [{"type": "output_text", "text": "Hello."}], "id": "msg_1"},
         {**SAID, "content": [TEXT]}),
        ({**SAID, "status": None, "content": [{**TEXT, "annotations": None}]}, {**SAID, "content": [TEXT]}),
        ({**SAID, "content": [{"type": "refusal", "refusal": "No."}]}, {**SAID, "content": [{**TEXT, "text": "No."}]}),
        ({"id": "rs_1", "type": "reasoning", "content": THOUGHT["content"]}, THOUGHT),
        ({**THOUGHT, "summary": None}, THOUGHT),
        ({**THOUGHT, "content": None, "summary": [{"type": "summary_text", "text": "Hm."}]},
         {**THOUGHT, "summary": [{"type": "summary_text", "text": "Hm."}]}),
        ({"id": "rs_1", "type": "reasoning", "encrypted_content": "abc"},
         {"id": "rs_1", "type": "reasoning", "encrypted_content": "abc", "summary": []}),
        ({**CALL, "id": None}, {name: value for name, value in CALL.items() if name != "id"}),
        ({**OUTPUT, "id": None}, OUTPUT),
    ],
)  # fmt: skip
def test_item_gets_what_servers_demand_of_it(given: Json, expected: Json) -> None:
    assert told(given) == [expected]
    SERVER.validate_python(expected)


@pytest.mark.parametrize("item", [{**SAID, "id": None}, {**THOUGHT, "id": None}])
def test_missing_id_that_servers_demand_is_filled_in_by_place_and_always_the_same(item: Json) -> None:
    first, second = told(item, item)
    prefix = item_prefix(item["type"])

    assert [first, second] == told(item, item)
    assert first["id"] != second["id"]
    assert {**first, "id": None} == item
    for filled in (first, second):
        assert filled["id"].startswith(f"{prefix}_")
        assert GRAMMAR.fullmatch(filled["id"])


@pytest.mark.parametrize(
    ("written", "sent"),
    [
        ("", "{}"),
        (" \n", "{}"),
        ('{"x":  1}', '{"x":  1}'),
        ('{"x": "a', '{"invalid_json":"{\\"x\\": \\"a"}'),
        ("[1]", '{"invalid_json":"[1]"}'),
    ],
)
def test_arguments_of_a_call_are_always_a_json_object(written: str, sent: str) -> None:
    assert told({**CALL, "arguments": written}, OUTPUT) == [{**CALL, "arguments": sent}, OUTPUT]


foreign_ids = st.one_of(
    st.text(st.characters(exclude_categories=()), min_size=1, max_size=80),
    st.sampled_from(["item_x", "msg_item_x", "call_1", "fc", "msg_", "msg_é", "msg_" + "x" * 61, "\ud83d", "a\0"]),
)


@given(ids=st.lists(foreign_ids, min_size=1, max_size=8, unique=True), kind=st.sampled_from(sorted(PASSED)))
@settings(max_examples=100, deadline=None)
def test_foreign_ids_become_valid_ones_and_never_two_of_them_the_same(ids: list[str], kind: str) -> None:
    samples = {"message": SAID, "reasoning": THOUGHT, "function_call": CALL}
    items = [{**samples.get(kind, {**OUTPUT, "type": kind}), "id": foreign} for foreign in ids]

    got = told(*items)

    assert [item.get("call_id") for item in got] == [item.get("call_id") for item in items]
    assert len({item["id"] for item in got}) == len(ids)
    for item in got:
        assert GRAMMAR.fullmatch(item["id"])
        assert item["id"].startswith(f"{item_prefix(kind)}_")
    for foreign, item in zip(ids, got, strict=True):
        if foreign.startswith(f"{item_prefix(kind)}_") and GRAMMAR.fullmatch(foreign):
            assert item["id"] == foreign


def test_ids_of_ours_are_kept() -> None:
    items = [{**SAID, "id": item_id("message")}, {**THOUGHT, "id": item_id("reasoning")}]

    assert told(*items) == items


@pytest.mark.parametrize(
    ("item", "name", "arguments", "output"),
    [
        ({"type": "web_search_call", "action": {"type": "search", "query": "tea"}, "status": "completed"},
         "web_search", {"type": "search", "query": "tea"}, "completed"),
        ({"type": "file_search_call", "queries": ["tea"], "results": [{"text": "Green."}], "status": "completed"},
         "file_search", {"queries": ["tea"]}, {"results": [{"text": "Green."}]}),
        ({"type": "file_search_call", "queries": ["tea"], "results": None, "status": "completed"},
         "file_search", {"queries": ["tea"]}, {}),
        ({"type": "code_interpreter_call", "code": "1+1", "outputs": [{"type": "logs", "logs": "2"}],
          "container_id": "cntr_1"},
         "code_interpreter", {"code": "1+1"}, {"outputs": [{"type": "logs", "logs": "2"}]}),
    ],
)  # fmt: skip
def test_hosted_call_is_told_as_a_function_call_and_its_output(
    item: Json, name: str, arguments: Json, output: str | Json
) -> None:
    call, answer = told({**item, "id": "ws_1"})

    assert call == {
        "type": "function_call",
        "call_id": answer["call_id"],
        "name": name,
        "arguments": call["arguments"],
    }
    assert decode(call["arguments"]) == arguments
    assert answer["type"] == "function_call_output"
    assert answer["output"] == output if isinstance(output, str) else decode(answer["output"]) == output
    assert GRAMMAR.fullmatch(call["call_id"])
    for each in (call, answer):
        SERVER.validate_python(each)


def test_hosted_calls_are_never_taken_for_each_other() -> None:
    search = {"type": "web_search_call", "action": {"type": "search"}}
    got = told(*[{**search, "id": given} for given in ("ws_1", "ws 1", "1", None, None)])

    call_ids = [item["call_id"] for item in got]
    assert len(set(call_ids)) == 5
    assert call_ids[::2] == call_ids[1::2]


@pytest.mark.parametrize(
    ("call", "output", "name", "arguments", "text"),
    [
        ({"type": "shell_call", "action": {"commands": ["ls"]}},
         {"type": "shell_call_output", "output": [{"stdout": "a"}]},
         "shell", {"commands": ["ls"]}, '{"output":[{"stdout":"a"}]}'),
        ({"type": "local_shell_call", "action": {"type": "exec", "command": ["ls"]}},
         {"type": "local_shell_call_output", "output": "a"},
         "local_shell", {"type": "exec", "command": ["ls"]}, "a"),
        ({"type": "apply_patch_call", "operation": {"type": "delete_file", "path": "a"}},
         {"type": "apply_patch_call_output", "status": "failed", "output": "no such file"},
         "apply_patch", {"type": "delete_file", "path": "a"}, '{"status":"failed","output":"no such file"}'),
    ],
)  # fmt: skip
def test_call_and_output_that_are_two_items_are_told_as_a_pair_under_the_clients_call_id(
    call: Json, output: Json, name: str, arguments: Json, text: str
) -> None:
    first, second = told({**call, "id": "sh_1", "call_id": "any id"}, {**output, "call_id": "any id"})

    assert (first["type"], first["call_id"], first["name"]) == ("function_call", "any id", name)
    assert decode(first["arguments"]) == arguments
    assert second == {"type": "function_call_output", "call_id": "any id", "output": text}


def test_output_of_the_local_shell_may_name_its_call_by_its_id() -> None:
    (answer,) = told({"type": "local_shell_call_output", "id": "c", "output": "a"})

    assert answer["call_id"] == "c"


def test_mcp_call_that_nobody_above_has_told_is_a_pair_too() -> None:
    call, answer = told({
        "type": "mcp_call", "id": "mcp_1", "server_label": "s", "name": "f", "arguments": "{}", "output": "x"
    })  # fmt: skip

    assert (call["type"], call["name"], answer["output"]) == ("function_call", "f", "x")
    assert call["call_id"] == answer["call_id"]


@pytest.mark.parametrize(
    "item",
    [
        {"type": "mcp_list_tools", "server_label": "s", "tools": []},
        {"type": "mcp_approval_request", "server_label": "s", "name": "f", "arguments": "{}"},
        {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": None},
    ],
)
def test_item_that_says_nothing_to_a_model_is_left_out(item: Json) -> None:
    assert told(THOUGHT, item, SAID) == [THOUGHT, SAID]


UNTELLABLE: list[Any] = [
    {"type": "compaction", "encrypted_content": "abc"},
    {"type": "compaction_trigger"},
    {"type": "image_generation_call", "result": "iVBO"},
    {"type": "computer_call", "call_id": "c"},
    {"type": "computer_call_output", "call_id": "c"},
    {"type": "configuration_update"},
    {"type": "program", "call_id": "c"},
    {"type": "program_output", "call_id": "c"},
    {"type": "shell_call"},
    {"type": "additional_tools", "role": "developer", "tools": []},
    {"type": "item_reference", "id": "msg_1"},
]


def test_what_agents_say_to_each_other_is_told_as_messages() -> None:
    head, body = (
        {"type": "input_text", "text": "From /root:\n"},
        {"type": "encrypted_content", "encrypted_content": "Go."},
    )
    routed = {"type": "agent_message", "id": "amsg_1", "author": "/root", "recipient": "/root/a"}

    assert told({**routed, "content": [head, body]}) == [
        {"type": "message", "role": "user", "content": [head, {"type": "input_text", "text": "Go."}]}
    ]


@pytest.mark.parametrize("item", UNTELLABLE, ids=lambda item: item["type"])
def test_item_that_cannot_be_told_is_refused_by_name(item: Json) -> None:
    with pytest.raises(ClientError) as refused:
        told(SAID, item)

    error = refused.value
    assert (error.http_status, error.code, error.param) == (400, "unsupported_value", "input")
    assert f"'{item['type']}'" in error.message


def test_bare_reference_is_refused_as_one() -> None:
    with pytest.raises(ClientError, match="'item_reference'"):
        told({"id": "msg_1"})


def test_every_item_type_of_the_api_is_decided() -> None:
    decided = PASSED | set(BUILTIN_TELLERS) | ORCHESTRATION_ITEMS | {item["type"] for item in UNTELLABLE}

    assert set(ITEM_TYPES) <= decided | {"mcp_call", "agent_message"}


def test_reasoning_stays_next_to_what_it_led_to() -> None:
    search = {"type": "web_search_call", "id": "ws_1", "action": {"type": "search"}, "status": "completed"}
    listing = {"type": "mcp_list_tools", "server_label": "s", "tools": []}

    got = told(listing, THOUGHT, CALL, OUTPUT, THOUGHT, search, THOUGHT, SAID)

    assert [item["type"] for item in got] == [
        "reasoning",
        "function_call",
        "function_call_output",
        "reasoning",
        "function_call",
        "function_call_output",
        "reasoning",
        "message",
    ]
