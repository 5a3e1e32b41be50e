from __future__ import annotations

import pytest

from attache_core import json_codec
from attache_core.errors import AttacheError, ClientError, UpstreamError, error_object
from attache_core.events.dialects import dialect_for
from attache_core.json_codec import Json
from core.events.recordings import Recorded, all_recorded

REFUSALS = [pytest.param(answer, id=answer.name) for answer in all_recorded(stream=False) if answer.status >= 400]


def read(status: int, body: object, headers: dict[str, str] | None = None) -> AttacheError:
    data = body if isinstance(body, bytes) else json_codec.encode(body)
    return dialect_for("auto").error(status, headers or {}, data)


def facts(error: AttacheError) -> Json:
    return {"status": error.http_status, "headers": error.headers, **error_object(error)}


@pytest.mark.parametrize("answer", REFUSALS)
def test_recorded_refusal_keeps_its_status_and_words(answer: Recorded) -> None:
    assert answer.body is not None
    error, said = read(answer.status, answer.body), answer.body["error"]
    assert isinstance(error, ClientError)
    assert (error.http_status, error.message) == (answer.status, said["message"])
    if answer.name.startswith("errors/"):
        assert error_object(error) == said


def test_llama_cpp_refusal_of_a_long_input_has_the_code_of_the_api() -> None:
    body = {"error": {"code": 400, "message": "too long", "type": "exceed_context_size_error", "n_ctx": 4096}}
    assert facts(read(400, body)) == {
        "status": 400, "headers": {}, "message": "too long", "type": "invalid_request_error",
        "param": "input", "code": "context_length_exceeded",
    }  # fmt: skip


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"message": "no such model", "type": "NotFoundError", "param": "model", "code": 404}},
        {"object": "error", "message": "no such model", "type": "NotFoundError", "param": "model", "code": 404},
    ],
)
def test_vllm_error_has_no_python_class_for_a_type_and_no_status_for_a_code(body: Json) -> None:
    assert facts(read(404, body)) == {
        "status": 404, "headers": {}, "message": "no such model", "type": "invalid_request_error",
        "param": "model", "code": None,
    }  # fmt: skip


@pytest.mark.parametrize(("code", "read_as"), [(400, None), (1234, "1234"), ("400", "400"), (None, None), (True, None)])
def test_code_is_a_string_or_null(code: object, read_as: str | None) -> None:
    assert read(400, {"error": {"message": "no", "code": code}}).code == read_as


@pytest.mark.parametrize("status", [401, 403])
@pytest.mark.parametrize("body", [{"error": "Unauthorized"}, b"<html>", b""])
def test_upstream_401_and_403_stay(status: int, body: object) -> None:
    error = read(status, body)
    assert (type(error), error.http_status) == (ClientError, status)


@pytest.mark.parametrize("status", [429, 503])
def test_retry_after_is_kept_where_it_means_the_client(status: int) -> None:
    error = read(status, {"error": {"message": "busy"}}, {"retry-after": "7", "server": "uvicorn"})
    assert (error.http_status, error.headers) == (status, {"retry-after": "7"})
    assert read(400, {"error": {"message": "no"}}, {"retry-after": "7"}).headers == {}


@pytest.mark.parametrize(("status", "shown"), [(500, 502), (501, 502), (502, 502), (503, 503), (504, 504)])
def test_server_failure_is_a_gateway_error_without_its_words(status: int, shown: int) -> None:
    error = read(status, {"error": {"message": "Traceback (most recent call last): secret", "code": "x"}})
    assert isinstance(error, UpstreamError)
    assert facts(error) == {
        "status": shown, "headers": {}, "message": f"The inference server failed with HTTP status {status}.",
        "type": "server_error", "param": None, "code": None,
    }  # fmt: skip


@pytest.mark.parametrize("status", [302, 400, 404, 405, 422])
@pytest.mark.parametrize(
    "body", [b"", b"<html>secret</html>", b"[1]", b'{"detail":"x"}', b'{"error":{}}', b"\xff", b"{"]
)
def test_body_that_is_no_api_error_is_502_and_not_echoed(status: int, body: bytes) -> None:
    error = read(status, body)
    assert (type(error), error.http_status, "secret" in error.message) == (UpstreamError, 502, False)
