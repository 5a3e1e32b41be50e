"""Requests that are refused: the answer of OpenAI's API, nothing stored, nothing sent upstream."""

from __future__ import annotations

import pytest

from attache_core.json_codec import Json, encode
from attache_core.testing.model_script import garbage, http_error, raw, stream_error, text
from e2e.stage import Stage

INVALID = "invalid_request_error"


def error(message: str, param: str | None, code: str | None) -> Json:
    return {"error": {"message": message, "type": INVALID, "param": param, "code": code}}


REFUSED: list[tuple[str, Json, str, str | None, str | None]] = [
    (
        "missing model",
        {"input": "Hi"},
        "Missing required parameter: 'model'.",
        "model",
        "missing_required_parameter",
    ),
    (
        "wrong type",
        {"model": "m", "input": "Hi", "temperature": "hot"},
        "Invalid type for 'temperature': expected a decimal, but got a string instead.",
        "temperature",
        "invalid_type",
    ),
    (
        "unknown previous response",
        {"model": "m", "input": "Hi", "previous_response_id": "resp_0123456789abcdef"},
        "Previous response with id 'resp_0123456789abcdef' not found.",
        "previous_response_id",
        "previous_response_not_found",
    ),
    (
        "output without call_id",
        {"model": "m", "input": [{"type": "function_call_output", "output": "x"}]},
        "Missing required parameter: 'input[0].call_id'.",
        "input[0].call_id",
        "missing_required_parameter",
    ),
    (
        "output of an unknown call",
        {"model": "m", "input": [{"type": "function_call_output", "call_id": "call_x", "output": "x"}]},
        "No tool call found for function call output with call_id call_x.",
        "input",
        None,
    ),
    (
        "call without output",
        {"model": "m", "input": [{"type": "function_call", "call_id": "call_x", "name": "f", "arguments": "{}"}]},
        "No tool output found for function call call_x.",
        "input",
        None,
    ),
    (
        "tool choice without tools",
        {"model": "m", "input": "Hi", "tool_choice": {"type": "function", "name": "get_weather"}},
        "Tool choice 'function' not found in 'tools' parameter.",
        "tool_choice",
        None,
    ),
]


@pytest.mark.parametrize(
    ("body", "expected"),
    [(body, error(message, param, code)) for _, body, message, param, code in REFUSED],
    ids=[row[0] for row in REFUSED],
)
async def test_bad_request_is_refused_as_openai_refuses_it(
    stage: Stage, stream: bool, body: Json, expected: Json
) -> None:
    before = stage.stored_turns()

    answer = await stage.post({**body, "stream": stream})

    assert (answer.status, answer.body) == (400, expected)
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-request-id"]
    assert (stage.model.asked, stage.stored_turns()) == ([], before)


@pytest.mark.parametrize(
    "tool",
    [{"type": "time_machine"}, {"type": "web_search"}, {"type": "code_interpreter", "container": {"type": "auto"}}, {}],
    ids=str,
)
async def test_tool_type_that_is_not_run_here_is_refused_by_name(stage: Stage, stream: bool, tool: Json) -> None:
    answer = await stage.ask(input="Hi", tools=[tool], stream=stream)

    assert (answer.status, answer.body["error"]["type"]) == (400, INVALID)
    assert answer.body["error"]["param"].startswith("tools[0]")
    assert tool.get("type", "tools[0].type") in answer.body["error"]["message"]
    assert stage.model.asked == []


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'"text"', b"\xff\xfe", b'{"model": "m", "input": "\xc3\x28"}'])
async def test_body_that_is_not_a_json_object_is_refused(stage: Stage, body: bytes) -> None:
    answer = await stage.post(body)

    assert (answer.status, answer.body["error"]["type"]) == (400, INVALID)
    assert not {"orjson", "pydantic", "Traceback", "JSONDecodeError"} & set(answer.body["error"]["message"].split())
    assert stage.model.asked == []


async def test_body_over_the_limit_is_refused_with_413(stage: Stage, stream: bool) -> None:
    body = encode({"model": "m", "input": "x" * (10 * 1024 * 1024), "stream": stream})

    answer = await stage.post(body)

    assert (answer.status, answer.body["error"]["type"]) == (413, INVALID)
    assert stage.model.asked == []


async def test_large_body_within_the_limit_reaches_the_model(stage: Stage, stream: bool) -> None:
    stage.model.play(text("Long."))
    said = "x" * (2 * 1024 * 1024)

    answer = await stage.ask(input=said, stream=stream)

    assert answer.text == "Long."
    assert stage.model.asked[0]["input"] == said


async def test_internal_headers_of_a_client_are_not_believed(stage: Stage, stream: bool) -> None:
    stage.model.play(text("Hi."))
    forged = {"x-attache-response-id": "resp_forged", "x-attache-tenant": "other", "x-attache-segment": "none"}

    answer = await stage.post({"model": "m", "input": "Hi", "stream": stream}, forged)

    assert answer.body["id"] != "resp_forged"
    assert (await stage.get(f"/v1/responses/{answer.body['id']}")).status_code == 200
    assert not [name for name in answer.headers if name.startswith("x-attache")]


@pytest.mark.parametrize("path", ["/v1/responses/resp_unknown", "/v1/responses/" + "resp_" + "a" * 48])
async def test_unknown_response_is_404(stage: Stage, path: str) -> None:
    answer = await stage.get(path)

    response_id = path.rpartition("/")[2]
    assert (answer.status_code, answer.json()) == (
        404,
        error(f"Response with id '{response_id}' not found.", None, None),
    )


async def test_response_id_of_another_kind_is_400(stage: Stage) -> None:
    answer = await stage.get("/v1/responses/conv_123")

    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid_value")


async def test_error_of_the_model_server_before_its_first_byte_is_a_real_status(stage: Stage, stream: bool) -> None:
    refusal = {"error": {"message": "No such model.", "type": INVALID, "param": "model", "code": "model_not_found"}}
    stage.model.play(http_error(404, refusal), http_error(429, refusal, {"retry-after": "7"}), http_error(500, refusal))
    before = stage.stored_turns()

    answers = [await stage.ask(input="Hi", stream=stream) for _ in range(3)]

    assert [answer.status for answer in answers] == [404, 429, 502]
    assert answers[0].body == refusal
    assert answers[1].headers["retry-after"] == "7"
    assert stage.stored_turns() == before


async def test_garbage_of_the_model_server_is_502_and_not_the_clients_fault(stage: Stage, stream: bool) -> None:
    stage.model.play(garbage(), raw(200, {"content-type": "text/html"}, [b"<html>busy</html>"]))
    before = stage.stored_turns()

    answers = [await stage.ask(input="Hi", stream=stream) for _ in range(2)]

    assert [answer.status for answer in answers] == [502, 502]
    assert [answer.body["error"]["type"] for answer in answers] == ["server_error", "server_error"]
    assert "busy" not in str([answer.body for answer in answers])
    assert stage.stored_turns() == before


async def test_failure_within_a_stream_ends_it_as_failed(stage: Stage) -> None:
    stage.model.play(stream_error("Out of memory."))

    answer = await stage.ask(input="Hi", stream=True)

    assert answer.types[-1] == "response.failed"
    assert answer.body["status"] == "failed"


async def test_path_outside_the_api_is_404_in_the_apis_shape(stage: Stage) -> None:
    answer = await stage.get("/nowhere")

    assert (answer.status_code, answer.headers["content-type"]) == (404, "application/json")
    assert answer.json()["error"]["type"] == INVALID


async def test_health_and_readiness(stage: Stage) -> None:
    assert (await stage.get("/health")).status_code == 200
    assert (await stage.get("/ready")).status_code == 200
