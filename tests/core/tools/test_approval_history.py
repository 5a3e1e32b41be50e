"""What the model is told of calls that a user was asked for."""

from __future__ import annotations

import pytest

from attache_core.json_codec import Json
from attache_core.tools.approval_history import with_outcomes
from attache_core.tools.history import model_input
from attache_core.tools.mcp.items import tell_call
from attache_core.tools.registry import ToolRegistry

USER: Json = {"type": "message", "role": "user", "content": "Hurry."}
CALL: Json = {"type": "function_call", "call_id": "c", "name": "g", "arguments": "{}"}
OUTPUT: Json = {"type": "function_call_output", "call_id": "c", "output": "x"}


def asked(request_id: str) -> Json:
    return {"type": "mcp_approval_request", "id": request_id, "server_label": "s", "name": "f", "arguments": "{}"}


def response(request_id: str, *, approve: bool = True, reason: str | None = None) -> Json:
    given = {"type": "mcp_approval_response", "approval_request_id": request_id, "approve": approve}
    return given if reason is None else {**given, "reason": reason}


def made(request_id: str) -> Json:
    named = {"server_label": "s", "name": "f", "arguments": "{}"}
    return {
        "type": "mcp_call",
        "id": f"mcp_{request_id}",
        "approval_request_id": request_id,
        "output": "found",
        **named,
    }


def denied(request_id: str, output: str) -> Json:
    named = {"server_label": "s", "name": "f", "arguments": "{}"}
    return {"type": "mcp_call", "id": request_id, **named, "output": output}


ODD: Json = {"approval_request_id": {}, "approve": True}
REFUSED = "The user did not approve this call: it was not run."


def test_call_stands_once_where_the_model_made_it_whatever_came_between() -> None:
    items = [USER, asked("a"), CALL, response("a"), OUTPUT, USER, made("a"), USER]
    assert with_outcomes(items) == [USER, made("a"), CALL, response("a"), OUTPUT, USER, USER]


def test_denied_call_is_told_with_the_users_reason() -> None:
    items = [asked("a"), asked("b"), response("b", approve=False), response("a", approve=False, reason="Too dear.")]
    assert with_outcomes(items)[:2] == [
        denied("a", f"{REFUSED} The user's reason: Too dear."),
        denied("b", REFUSED),
    ]


def test_approved_call_without_a_result_is_told_as_such() -> None:
    """Its item was removed from the conversation, or the approval was added to one by which no turn ran."""
    lost = denied("a", "The user approved this call, but this conversation has no result of it.")
    assert with_outcomes([USER, asked("a"), response("a"), USER]) == [USER, lost, response("a"), USER]


@pytest.mark.parametrize(
    "items",
    [
        [],
        [USER, asked("a")],
        [made("a"), USER],
        [response("a", approve=False)],
    ],
)
def test_what_has_no_outcome_or_no_request_stays_where_it_is(items: list[Json]) -> None:
    assert with_outcomes(items) == items


def test_ids_that_are_none_belong_to_nothing() -> None:
    """Where no filter above has looked at the items."""
    items = [{**asked("a"), "id": {}}, {**made("a"), "approval_request_id": []}, {**response("a"), "id": [], **ODD}]
    assert with_outcomes(items) == items


def test_request_that_is_there_twice_is_one_call() -> None:
    items = [asked("a"), asked("a"), response("a"), made("a")]
    assert with_outcomes(items) == [made("a"), asked("a"), response("a")]


def test_model_is_told_one_function_call_and_its_output() -> None:
    registry = ToolRegistry(tellers={"mcp_call": tell_call})
    told = model_input([asked("mcpr_1"), USER, response("mcpr_1", approve=False, reason="No.")], registry)
    call_id = "call_mcpr_1"
    assert [(item["type"], item.get("call_id"), item.get("output")) for item in told] == [
        ("function_call", call_id, None),
        ("function_call_output", call_id, f"{REFUSED} The user's reason: No."),
        ("message", None, None),
    ]
