"""Endpoints of state that are not served are refused here; a stateless server is never asked about ids of ours."""

from __future__ import annotations

import pytest

from e2e.stage import Stage


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/v1/responses/"),
        ("GET", "/v1/responses"),
        ("GET", "/v1/responses/resp_x/output_items"),
        ("POST", "/v1/conversations/"),
        ("GET", "/v1/conversations/conv_x/turns"),
    ],
)
async def test_endpoint_of_state_that_is_not_served_is_404_and_the_upstream_sees_nothing(
    stage: Stage, method: str, path: str
) -> None:
    server = stage.model.server
    assert server is not None
    server.other_requests.clear()

    answer = await stage.client.request(method, path, json={"model": "m", "input": "Hi"} if method == "POST" else None)

    message = f"Invalid URL ({method} {path})"
    assert (answer.status_code, answer.json()) == (
        404,
        {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": "unknown_url"}},
    )
    assert (stage.model.asked, server.other_requests) == ([], [])


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", "/v1/responses/resp_x", "DELETE, GET"),
        ("GET", "/v1/responses/resp_x/cancel", "POST"),
        ("POST", "/v1/responses/resp_x/input_items", "GET"),
        ("GET", "/v1/conversations", "POST"),
        ("PATCH", "/v1/conversations/conv_x", "DELETE, GET, POST"),
        ("DELETE", "/v1/conversations/conv_x/items", "GET, POST"),
        ("POST", "/v1/conversations/conv_x/items/msg_x", "DELETE, GET"),
    ],
)
async def test_method_that_an_endpoint_of_state_has_not_is_405_and_names_those_that_it_has(
    stage: Stage, method: str, path: str, allowed: str
) -> None:
    answer = await stage.client.request(method, path)

    message = f"Not allowed to {method} on '{path}'. Allowed here: {allowed}."
    assert (answer.status_code, answer.headers["allow"], answer.json()) == (
        405,
        allowed,
        {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": "method_not_supported"}},
    )
