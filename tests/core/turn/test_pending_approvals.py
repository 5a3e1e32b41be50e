"""Which requests for approval a conversation leaves open, and which of them a turn answers."""

from __future__ import annotations

import pytest

from attache_core.errors import ClientError
from attache_core.json_codec import Json
from attache_core.turn.pending_approvals import answered_now, check_approvals

USER: Json = {"type": "message", "role": "user", "content": "Hi"}
SAID: Json = {"type": "message", "role": "assistant", "content": "Hello."}


def asked(request_id: str) -> Json:
    return {"type": "mcp_approval_request", "id": request_id, "server_label": "s", "name": "f", "arguments": "{}"}


def response(request_id: str, *, approve: bool = True) -> Json:
    return {"type": "mcp_approval_response", "approval_request_id": request_id, "approve": approve}


def made(request_id: str) -> Json:
    return {"type": "mcp_call", "id": f"mcp_{request_id}", "approval_request_id": request_id, "output": "x"}


def found(items: list[Json], history_items: int = 0) -> list[tuple[str, bool]]:
    return [(one.id, one.approve) for one in answered_now(items, history_items)]


@pytest.mark.parametrize(
    "items",
    [
        [],
        [asked("a"), response("a")],
        [asked("a"), asked("b"), response("b"), USER, response("a", approve=False)],
        [asked("a"), asked("a"), response("a")],
        [asked("a"), response("a"), made("a"), asked("a")],
        [{**made("a"), "approval_request_id": None}],
    ],
)
def test_requests_that_are_all_answered_are_accepted(items: list[Json]) -> None:
    check_approvals(items)


UNKNOWN = "The following MCP approval requests have approval responses but weren't passed as input: {}"
OPEN = "The following MCP approval requests do not have an approval: {}"
AGAIN = "The MCP approval request {} was answered before."


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ([asked("a"), asked("b"), asked("c"), response("b")], OPEN.format("a, c")),
        ([asked("a"), USER], OPEN.format("a")),
        ([response("a")], UNKNOWN.format("a")),
        ([response("a"), asked("a")], UNKNOWN.format("a")),
        ([made("a"), response("mcp_a")], UNKNOWN.format("mcp_a")),
        ([{"type": "function_call", "call_id": "c"}, response("c")], UNKNOWN.format("c")),
        ([asked("a"), response("a"), response("a")], AGAIN.format("a")),
        ([asked("a"), response("a", approve=False), SAID, response("a")], AGAIN.format("a")),
    ],
)
def test_request_or_response_without_its_partner_is_refused_by_name(items: list[Json], message: str) -> None:
    with pytest.raises(ClientError) as refused:
        check_approvals(items)
    error = refused.value
    assert (error.http_status, error.param, error.message) == (400, "input", message)


def test_answers_of_this_turn_come_in_the_order_of_their_requests() -> None:
    items = [USER, asked("a"), asked("b"), response("b"), response("a", approve=False)]
    assert found(items, history_items=3) == [("a", False), ("b", True)]
    assert found([USER, asked("a"), response("a"), asked("b"), response("b", approve=False)]) == [
        ("a", True),
        ("b", False),
    ]


def test_answers_of_turns_before_are_not_given_again() -> None:
    """In the store's history; and in what a client sends again, by what followed them."""
    stored = [asked("a"), response("a"), made("a"), asked("b"), response("b", approve=False), SAID]
    assert found([*stored, USER], history_items=len(stored)) == []
    assert found([*stored, USER]) == []
    assert found([*stored, asked("c"), response("c")]) == [("c", True)]


def test_denial_after_which_the_model_asked_again_is_not_given_again() -> None:
    again = [USER, asked("a"), response("a", approve=False), asked("b"), response("b", approve=False)]
    assert found(again) == [("b", False)]
    assert found([USER, asked("a"), asked("b"), *again[2:3], *again[4:]]) == [("a", False), ("b", False)]


def test_answer_that_only_looks_old_is_still_an_answer() -> None:
    """An approval without its call, and a denial of what the store asked for, whatever a client puts behind them."""
    assert found([asked("a"), response("a"), SAID]) == [("a", True)]
    assert found([asked("a"), response("a", approve=False), SAID], history_items=1) == [("a", False)]
