from __future__ import annotations

import pytest

from attache_core import json_codec
from attache_core.errors import AttacheError, ClientError, UpstreamError, error_object
from attache_core.events.dialects import dialect_for
from attache_core.events.dialects.http_error import stream_error
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


TOO_LONG = [
    "This model's maximum context length is 1536 tokens. However, your request has 4176 input tokens. Please reduce …",
    "This model's maximum context length is 8192 tokens. However, you requested 9100 tokens (8100 in the messages, …",
    "ValueError: This model's maximum context length is 8192 tokens. However, you requested 512 output tokens and …",
    "This model's maximum context length is 4097 tokens. However, your messages resulted in 6164 tokens.",
    "this model's maximum context length is 4096 tokens, but the prompt contains 5000 input tokens",
    "The engine prompt length 227861 exceeds the max_model_len 131072. Please reduce prompt.",
    "The decoder prompt (length 5951) is longer than the maximum model length of 4096. Make sure that …",
    "The prompt (total length 5000) is too long to fit into the model (context length 4096).",
    "Input length (265330) exceeds model's maximum context length (262144).",
    "Input length (66,275) exceeds model's maximum context length (65,536).",
    "Input length (57719 tokens) exceeds the maximum allowed length (55539 tokens). Use a shorter input or enable …",
    "The input (250000 tokens) is longer than the model's context length (200000 tokens).",
    "Requested token count exceeds the model's maximum context length of 131072 tokens. You requested a total of …",
    "the request exceeds the available context size, try increasing it",
    "request (5000 tokens) exceeds the available context size (4096 tokens), try increasing it",
]
"""What vLLM, SGLang and llama.cpp say of an input that does not fit."""

NOT_TOO_LONG = [
    "'max_tokens' … is too large: 8000. This model's maximum context length is 4096 tokens and your request has 2778 …",
    "The encoder prompt (length 5951) is longer than the maximum model length of 4096.",
    "Invalid 'metadata.a': string too long. Expected a string with maximum length 512.",
    "Invalid 'input': array too long.",
    "The context length is not a parameter.",
    "Field required",
]


@pytest.mark.parametrize("status", [400, 413, 422])
@pytest.mark.parametrize("message", TOO_LONG)
def test_refusal_of_a_long_input_in_prose_has_the_code_of_the_api(message: str, status: int) -> None:
    error = {"message": message, "type": "BadRequestError", "param": None, "code": status}
    for body in ({"error": error}, {"object": "error", **error}, {"detail": message}):
        assert facts(read(status, body)) == {
            "status": status, "headers": {}, "message": message, "type": "invalid_request_error",
            "param": "input", "code": "context_length_exceeded",
        }  # fmt: skip


@pytest.mark.parametrize("message", NOT_TOO_LONG)
def test_other_refusals_are_not_taken_for_one_of_a_long_input(message: str) -> None:
    assert read(400, {"error": {"message": message, "code": 400}}).code is None


@pytest.mark.parametrize(("status", "code"), [(400, "invalid_prompt"), (404, None), (429, None)])
def test_refusal_that_says_what_it_is_stays_what_it_is(status: int, code: str | None) -> None:
    assert read(status, {"error": {"message": TOO_LONG[0], "code": code}}).code == code


def test_failure_of_the_server_is_not_the_inputs_though_it_says_so() -> None:
    assert facts(read(500, {"error": {"message": TOO_LONG[0]}})) == {
        "status": 502, "headers": {}, "message": "The inference server failed with HTTP status 500.",
        "type": "server_error", "param": None, "code": None,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("error", "code"),
    [
        *(({"message": message, "code": 400}, "context_length_exceeded") for message in TOO_LONG),
        ({"message": "too long", "type": "exceed_context_size_error", "code": 400}, "context_length_exceeded"),
        *(({"message": message, "code": 400}, "server_error") for message in NOT_TOO_LONG),
        ({"message": TOO_LONG[0], "code": "server_error"}, "server_error"),
    ],
)
def test_failure_in_a_stream_over_a_long_input_has_the_code_of_the_api(error: Json, code: str) -> None:
    assert stream_error(error) == {"code": code, "message": error["message"]}


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"message": "no such model", "type": "NotFoundError", "param": "model", "code": 404}},
        {"object": "error", "message": "no such model", "type": "NotFoundError", "param": "model", "code": 404},
    ],
    ids=["vllm", "sglang and older vllm"],
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
@pytest.mark.parametrize(
    ("body", "code"),
    [
        (
            {"error": {"message": "Incorrect API key: sk-secret", "type": "auth", "code": "invalid_api_key"}},
            "invalid_api_key",
        ),
        ({"error": "Unauthorized: sk-secret"}, None),
        (b"<html>secret</html>", None),
        (b"", None),
    ],
)
def test_refused_credentials_stay_401_or_403_without_the_servers_words(
    status: int, body: object, code: str | None
) -> None:
    error = read(status, body)
    assert type(error) is ClientError
    assert facts(error) == {
        "status": status, "headers": {}, "type": "invalid_request_error", "param": None, "code": code,
        "message": f"The inference server refused the credentials of this request with HTTP status {status}.",
    }  # fmt: skip


RETRY_HEADERS = {"retry-after": "7", "retry-after-ms": "7000", "x-ratelimit-remaining-requests": "0"}


@pytest.mark.parametrize("status", [408, 409, 429, 500, 503, 529])
def test_headers_for_a_retry_are_kept_where_the_same_request_may_succeed(status: int) -> None:
    error = read(status, {"error": {"message": "busy"}}, {**RETRY_HEADERS, "server": "uvicorn", "set-cookie": "a=b"})
    assert error.headers == RETRY_HEADERS


@pytest.mark.parametrize("status", [400, 401, 404, 413, 422])
def test_headers_for_a_retry_are_dropped_where_it_would_fail_again(status: int) -> None:
    assert read(status, {"error": {"message": "no"}}, RETRY_HEADERS).headers == {}


@pytest.mark.parametrize("status", [400, 404, 408, 409, 413, 422, 429])
def test_refusal_of_openai_keeps_all_that_it_says(status: int) -> None:
    said = {"message": "no", "type": "some_error", "param": "input[0].content", "code": "some_code"}
    assert facts(read(status, {"error": said})) == {"status": status, "headers": {}, **said}


@pytest.mark.parametrize(
    ("detail", "message", "param"),
    [
        (
            [
                {
                    "type": "missing",
                    "loc": ["body", "input", 0, "content"],
                    "msg": "Field required",
                    "input": {"a": "secret"},
                }
            ],
            "Field required",
            "input[0].content",
        ),
        ([{"loc": ["body"], "msg": "Not a dict"}], "Not a dict", None),
        ([{"msg": "No place"}, {"msg": "Second"}], "No place", None),
        ("The model is gone.", "The model is gone.", None),
    ],
)
@pytest.mark.parametrize("status", [400, 422])
def test_detail_of_fastapi_is_a_refusal(status: int, detail: object, message: str, param: str | None) -> None:
    assert facts(read(status, {"detail": detail})) == {
        "status": status, "headers": {}, "message": message, "type": "invalid_request_error",
        "param": param, "code": None,
    }  # fmt: skip


@pytest.mark.parametrize("detail", [[], [1], [{}], [{"msg": 3}], {}, None, "", 7])
def test_detail_that_says_nothing_is_502(detail: object) -> None:
    assert read(422, {"detail": detail}).http_status == 502


@pytest.mark.parametrize(("status", "detail"), [(404, "Not Found"), (405, "Method Not Allowed")])
def test_path_that_a_web_framework_does_not_have_is_502(status: int, detail: str) -> None:
    """It is the gateway file that names a server without a Responses API; the client cannot help that."""
    assert type(read(status, {"detail": detail})) is UpstreamError
    assert read(status, {"detail": detail}).http_status == 502


@pytest.mark.parametrize("body", [b"busy", b"", b"<html>"])
@pytest.mark.parametrize("status", [413, 429])
def test_too_large_and_too_many_need_no_readable_body(status: int, body: bytes) -> None:
    error = read(status, body)
    assert (type(error), error.http_status) == (ClientError, status)
    assert error.message == f"The inference server refused the request with HTTP status {status}."


@pytest.mark.parametrize("body", [b"", b"\x1f\x8b\x08\x00", b'{"error": {"message": "cut o'])
def test_error_body_that_is_empty_compressed_or_cut_off_is_502(body: bytes) -> None:
    assert read(400, body).http_status == 502


@pytest.mark.parametrize(
    ("status", "shown"), [(500, 502), (501, 502), (502, 502), (503, 503), (504, 504), (520, 502), (529, 503)]
)
def test_server_failure_is_a_gateway_error_without_its_words(status: int, shown: int) -> None:
    error = read(status, {"error": {"message": "Traceback (most recent call last): secret", "code": "x"}})
    assert isinstance(error, UpstreamError)
    assert facts(error) == {
        "status": shown, "headers": {}, "message": f"The inference server failed with HTTP status {status}.",
        "type": "server_error", "param": None, "code": None,
    }  # fmt: skip


@pytest.mark.parametrize("status", [302, 400, 404, 405, 422])
@pytest.mark.parametrize(
    "body", [b"", b"<html>secret</html>", b"secret", b"[1]", b'{"error":{}}', b'{"object":"error"}', b"\xff", b"{"]
)
def test_body_that_is_no_api_error_is_502_and_not_echoed(status: int, body: bytes) -> None:
    error = read(status, body)
    assert (type(error), error.http_status, "secret" in error.message) == (UpstreamError, 502, False)
