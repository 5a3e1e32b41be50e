"""Endpoints of state that are not served are refused here; a stateless server is never asked about ids of ours."""

from __future__ import annotations

import pytest

from e2e.stage import Stage


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/v1/responses/"),
        ("GET", "/v1/responses"),
        ("DELETE", "/v1/responses/resp_x"),
        ("POST", "/v1/responses/resp_x/cancel"),
        ("GET", "/v1/responses/resp_x/input_items"),
        ("POST", "/v1/conversations"),
        ("GET", "/v1/conversations/conv_x"),
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
