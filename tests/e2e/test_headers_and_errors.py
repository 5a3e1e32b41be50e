"""Headers that pass and headers that stop; answers that nobody but Envoy gives; failures before the first byte."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlsplit

import openai
import pytest
import pytest_asyncio

from attache_core.json_codec import Json, encode
from attache_core.testing.model_script import dies_after, held, http_error, raw, text
from e2e.raw_http import RawAnswer, RawServer, exchange, http_answer, running_raw_server
from e2e.stage import WAIT_S, Stage, open_stage

INVALID, SERVER = "invalid_request_error", "server_error"
OVERLOADED = {"error": {"message": "Slow down.", "type": "requests", "param": None, "code": "rate_limit_exceeded"}}

GATEWAY = """
chains:
  buffered:
    - envoy:
        name: envoy.filters.http.buffer
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.http.buffer.v3.Buffer
          max_request_bytes: 1000
routes:
  - {match: {path: /raw/v1/responses}, chain: responses, upstream: raw}
  - {match: {prefix: /raw}, upstream: raw}
  - {match: {path: /gone/v1/responses}, chain: responses, upstream: gone}
  - {match: {prefix: /gone}, upstream: gone}
  - {match: {path: /full/v1/responses}, chain: responses, upstream: full}
  - {match: {path: /v1/buffered}, chain: buffered}
timeouts: {request_s: 0.5, request_headers_s: 0.5, stream_idle_s: 1}
"""
HASTY = "headers_timeout_s: 0.6, idle_timeout_s: 0.3"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def raw_server() -> AsyncIterator[RawServer]:
    async with running_raw_server() as server:
        yield server


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def rough_stage(
    placement: str, raw_server: RawServer, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Stage]:
    others = (
        f"raw: {{url: '{raw_server.url}'}}, gone: {{url: 'http://127.0.0.1:1'}}, "
        f"full: {{url: '{raw_server.url}', max_requests: 1}}"
    )
    async with open_stage(
        placement,
        tmp_path_factory.mktemp(f"rough-{placement}"),
        gateway_yaml=GATEWAY,
        upstream_yaml=HASTY,
        other_upstreams_yaml=others,
    ) as stage:
        yield stage


@pytest.fixture
def rough(rough_stage: Stage, raw_server: RawServer) -> Stage:
    """A gateway whose upstreams are hasty, gone, full, or say what the test says."""
    rough_stage.model.play()
    raw_server.reset()
    return rough_stage


def port_of(stage: Stage) -> int:
    port = urlsplit(stage.gateway.url).port
    assert port is not None
    return port


def request(start: str, headers: str = "host: h\r\n", body: bytes = b"") -> bytes:
    return f"{start} HTTP/1.1\r\n{headers}\r\n".encode() + body


def create(stream: bool, path: str = "/v1/responses", **fields: Any) -> bytes:
    body = encode({"model": "m", "input": "Hi", "stream": stream, **fields})
    head = f"host: h\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
    return request(f"POST {path}", head, body)


def error_of(answer: RawAnswer) -> tuple[int, str, str | None]:
    """Status, type and code of an error that has the API's shape, all of it."""
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-request-id"]
    assert set(answer.body) == {"error"}
    error = answer.body["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert error["message"]
    return answer.status, error["type"], error["code"]


REFUSED: dict[str, tuple[bytes, tuple[int, str, str | None]]] = {
    "no route": (request("GET /nowhere"), (404, INVALID, "not_found")),
    "no resource": (request("GET /v1/responses/resp_1/nothing"), (404, INVALID, "unknown_url")),
    "method that the path does not take": (request("PUT /v1/responses"), (404, INVALID, "unknown_url")),
    "method that nobody knows": (request("BREW /v1/responses"), (400, INVALID, "request_refused")),
    "connect": (request("CONNECT h:443"), (404, INVALID, "request_refused")),
    "escaped slash": (request("GET /v1%2fmodels"), (400, INVALID, "request_refused")),
    "no host": (request("GET /v1/models", ""), (400, INVALID, "request_refused")),
    "not HTTP": (b"Hello there.\r\n\r\n", (400, INVALID, "request_refused")),
    "old HTTP": (b"GET /v1/models HTTP/1.0\r\nhost: h\r\n\r\n", (426, INVALID, "upgrade_required")),
    "bad header": (request("GET /v1/models", "host: h\r\nx: \x01\r\n"), (400, INVALID, "request_refused")),
    "bad length": (
        request("POST /v1/responses", "host: h\r\ncontent-length: x\r\n"),
        (400, INVALID, "request_refused"),
    ),
    "two lengths": (
        request("POST /v1/responses", "host: h\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n", b"0\r\n\r\n"),
        (400, INVALID, "request_refused"),
    ),
    "bad chunk": (
        request("POST /v1/models", "host: h\r\ntransfer-encoding: chunked\r\n", b"ZZ\r\n"),
        (400, INVALID, "request_refused"),
    ),
    "large headers": (
        request("GET /v1/models", f"host: h\r\nx: {'x' * 61 * 1024}\r\n"),
        (431, INVALID, "headers_too_large"),
    ),
    "headers that do not arrive": (b"GET /v1/mod", (408, INVALID, "request_timeout")),
    "body that does not arrive": (
        request("POST /v1/responses", "host: h\r\ncontent-length: 9\r\n", b"{"),
        (408, INVALID, "request_timeout"),
    ),
    "body too large for a filter of Envoy's": (
        request("POST /v1/buffered", "host: h\r\ncontent-length: 1001\r\n", bytes(1001)),
        (413, INVALID, "request_too_large"),
    ),
    "WebSocket": (
        request("GET /v1/responses", "host: h\r\nconnection: Upgrade\r\nupgrade: websocket\r\n"),
        (426, INVALID, "upgrade_required"),
    ),
    "upstream out of reach": (request("GET /gone/x"), (503, SERVER, "upstream_unavailable")),
    "upstream that hangs up": (request("GET /raw/x"), (502, SERVER, "upstream_broke_off")),
}


@pytest.mark.parametrize("case", REFUSED)
async def test_what_envoy_answers_itself_is_an_error_of_the_api(rough: Stage, case: str) -> None:
    sent, expected = REFUSED[case]

    assert error_of(await exchange(port_of(rough), sent)) == expected
    assert rough.model.asked == []


async def test_upstream_that_speaks_no_http_is_502(rough: Stage, raw_server: RawServer, stream: bool) -> None:
    raw_server.answer = b"Hello.\r\n\r\n"
    expected = (502, SERVER, "bad_upstream_response")

    assert error_of(await exchange(port_of(rough), request("GET /raw/x"))) == expected
    assert error_of(await exchange(port_of(rough), create(stream, "/raw/v1/responses"))) == expected


async def test_silent_upstream_of_a_route_without_a_chain_is_504(rough: Stage, raw_server: RawServer) -> None:
    raw_server.may_answer.clear()

    answer = await exchange(port_of(rough), request("GET /raw/x"))

    assert error_of(answer) == (504, SERVER, "timeout")
    raw_server.may_answer.set()


FAILING: dict[str, tuple[str, bytes, tuple[int, str, str | None]]] = {
    "out of reach": ("/gone/v1/responses", b"", (503, SERVER, "upstream_unavailable")),
    "hangs up": ("/raw/v1/responses", b"", (502, SERVER, "upstream_broke_off")),
    "garbage": (
        "/raw/v1/responses",
        http_answer(200, {"content-type": "text/html"}, b"<html>"),
        (502, SERVER, "bad_upstream_response"),
    ),
    "redirect": ("/raw/v1/responses", http_answer(302, {"location": "/x"}, b""), (502, SERVER, None)),
    "compressed": (
        "/raw/v1/responses",
        http_answer(200, {"content-type": "application/json", "content-encoding": "gzip"}, b"\x1f\x8b"),
        (502, SERVER, "bad_upstream_response"),
    ),
}


@pytest.mark.parametrize("case", FAILING)
async def test_turn_whose_upstream_fails_before_the_first_event_is_a_real_status(
    rough: Stage, raw_server: RawServer, stream: bool, case: str
) -> None:
    path, raw_server.answer, expected = FAILING[case]
    before = rough.stored_turns()

    assert error_of(await exchange(port_of(rough), create(stream, path))) == expected
    assert rough.stored_turns() == before


async def test_model_that_does_not_begin_to_answer_is_504(rough: Stage, stream: bool) -> None:
    never = asyncio.Event()
    rough.model.play(held(never, text("Too late.")))

    answer = await exchange(port_of(rough), create(stream))

    assert error_of(answer) == (504, SERVER, "upstream_timeout")
    await model_is_left_alone(rough)


async def test_answer_that_falls_silent_before_its_first_event_is_504(rough: Stage, stream: bool) -> None:
    never = asyncio.Event()
    kind = "text/event-stream" if stream else "application/json"
    rough.model.play(held(never, raw(200, {"content-type": kind}, [b'{"id"', b': "resp_1"}']), after_events=1))

    answer = await exchange(port_of(rough), create(stream))

    assert error_of(answer) == (504, SERVER, "upstream_timeout")
    await model_is_left_alone(rough)


async def model_is_left_alone(stage: Stage) -> None:
    """The model server works for nobody any more."""
    assert stage.model.server is not None
    await stage.model.server.wait_for_idle()


async def test_upstream_with_as_many_requests_as_it_may_have_is_503(
    rough: Stage, raw_server: RawServer, stream: bool
) -> None:
    """One request is under way, and one may wait for its connection, so that of two more one is refused."""
    raw_server.may_answer.clear()
    asked = create(stream, "/full/v1/responses")
    async with asyncio.timeout(2 * WAIT_S), asyncio.TaskGroup() as tasks:
        first = tasks.create_task(exchange(port_of(rough), asked))
        await raw_server.begun.wait()
        more = [tasks.create_task(exchange(port_of(rough), asked)) for _ in range(2)]
        refused, _ = await asyncio.wait(more, return_when=asyncio.FIRST_COMPLETED)
        raw_server.may_answer.set()

    assert {error_of(each.result()) for each in refused} == {(503, SERVER, "upstream_overloaded")}
    assert error_of(first.result()) == (502, SERVER, "upstream_broke_off")


ANSWERED: dict[str, tuple[str, str, Json | None, int]] = {
    "a turn": ("POST", "/v1/responses", {"model": "m", "input": "Hi"}, 200),
    "a streamed turn": ("POST", "/v1/responses", {"model": "m", "input": "Hi", "stream": True}, 200),
    "a refused turn": ("POST", "/v1/responses", {"input": "Hi"}, 400),
    "a refused streamed turn": ("POST", "/v1/responses", {"input": "Hi", "stream": True}, 400),
    "a turn that is too large": ("POST", "/v1/responses", {"model": "m", "input": "x" * 10 * 2**20}, 413),
    "a resource": ("GET", "/v1/responses/resp_0123456789abcdef", None, 404),
    "what Envoy passes on": ("GET", "/v1/models", None, 200),
    "health": ("GET", "/health", None, 200),
    "readiness": ("GET", "/ready", None, 200),
    "no route": ("GET", "/nowhere", None, 404),
}


@pytest.mark.parametrize("case", ANSWERED)
async def test_every_answer_has_a_request_id_of_its_own_or_the_clients(stage: Stage, case: str) -> None:
    method, path, body, status = ANSWERED[case]
    stage.model.set(lambda _: text("Hi."))
    content = None if body is None else encode(body)
    kind = {"content-type": "application/json"}

    named = await stage.client.request(method, path, content=content, headers={**kind, "x-request-id": "the-clients"})
    unnamed = [await stage.client.request(method, path, content=content, headers=kind) for _ in range(2)]

    assert [answer.status_code for answer in (named, *unnamed)] == [status] * 3
    assert named.headers.get_list("x-request-id") == ["the-clients"]
    ids = [answer.headers.get_list("x-request-id") for answer in unnamed]
    assert [len(each) for each in ids] == [1, 1]
    assert ids[0] != ids[1]


async def test_model_is_asked_under_the_clients_request_id(stage: Stage, stream: bool) -> None:
    stage.model.play(text("Hi."))

    await stage.post({"model": "m", "input": "Hi", "stream": stream}, {"x-request-id": "the-clients"})

    (asked,) = stage.model.requests
    assert asked.headers["x-request-id"] == "the-clients"


async def test_model_is_asked_for_an_answer_that_is_not_compressed(stage: Stage, stream: bool) -> None:
    stage.model.play(text("Hi."))

    await stage.post({"model": "m", "input": "Hi", "stream": stream}, {"accept-encoding": "gzip, br, zstd"})

    (asked,) = stage.model.requests
    assert asked.headers["accept-encoding"] == "identity"


HOP_BY_HOP = {"connection": "x-hop", "x-hop": "1", "keep-alive": "timeout=9", "proxy-connection": "keep-alive"}
FORGED = {
    "x-attache-tenant": "other",
    "x-attache-anything": "1",
    "x-envoy-retry-on": "5xx",
    "x-envoy-upstream-rq-timeout-ms": "1",
    "x-envoy-original-path": "/forged",
}


async def test_headers_of_one_connection_and_internal_ones_of_a_client_stop_here(
    rough: Stage, raw_server: RawServer, stream: bool
) -> None:
    raw_server.answer = http_answer(400, {"content-type": "application/json"}, encode(OVERLOADED))
    sent = {**HOP_BY_HOP, **FORGED, "te": "gzip", "x-mine": "kept"}

    for path in ("/raw/v1/responses", "/raw/v1/other"):
        raw_server.asked = {}
        head, _, body = create(stream, path).partition(b"\r\n\r\n")
        more = "".join(f"\r\n{name}: {value}" for name, value in sent.items())
        await exchange(port_of(rough), head + more.encode() + b"\r\n\r\n" + body)

        assert raw_server.asked["x-mine"] == "kept"
        assert sorted({*HOP_BY_HOP, *FORGED, "te"} & set(raw_server.asked)) == []


UPSTREAM_HEADERS = {
    "content-type": "application/json",
    "x-request-id": "req_theirs",
    "retry-after": "7",
    "retry-after-ms": "7001",
    "x-ratelimit-remaining-requests": "0",
    "keep-alive": "timeout=9",
    "proxy-connection": "keep-alive",
    "x-attache-tenant": "theirs",
    "attache-omitted-tools": "theirs",
    "x-envoy-upstream-service-time": "5",
    "x-envoy-overloaded": "true",
}


@pytest.mark.parametrize("path", ["/raw/v1/responses", "/raw/v1/other"], ids=["through a chain", "passed on by Envoy"])
async def test_error_of_an_upstream_keeps_what_a_client_acts_on_and_nothing_internal(
    rough: Stage, raw_server: RawServer, stream: bool, path: str
) -> None:
    raw_server.answer = http_answer(429, UPSTREAM_HEADERS, encode(OVERLOADED))

    answer = await exchange(port_of(rough), create(stream, path))

    assert (answer.status, answer.body) == (429, OVERLOADED)
    kept = ("content-type", "retry-after", "retry-after-ms", "x-ratelimit-remaining-requests", "x-upstream-request-id")
    assert {name: answer.headers[name] for name in kept} == {
        "content-type": "application/json",
        "retry-after": "7",
        "retry-after-ms": "7001",
        "x-ratelimit-remaining-requests": "0",
        "x-upstream-request-id": "req_theirs",
    }
    assert answer.headers["x-request-id"] != "req_theirs"
    internal = [name for name in answer.headers if name.startswith(("x-attache-", "attache-", "x-envoy-"))]
    assert (internal, sorted(HOP_BY_HOP.keys() & answer.headers)) == ([], [])


async def test_error_body_that_envoy_passes_on_is_left_as_it_is(rough: Stage, raw_server: RawServer) -> None:
    body = b'{ "error" : "theirs",\n "detail": [1, 2]}'
    for status in (400, 404, 413, 429, 500, 503, 504):
        raw_server.answer = http_answer(status, {"content-type": "application/problem+json"}, body)

        answer = await rough.get("/raw/v1/other")

        assert (answer.status_code, answer.content) == (status, body)
        assert answer.headers["content-type"] == "application/problem+json"


RETRIED = [
    http_error(429, OVERLOADED, {"retry-after-ms": "10"}),
    http_error(429, OVERLOADED, {"retry-after": "1"}),
    http_error(503, headers={"retry-after-ms": "10"}),
    http_error(500),
    dies_after(0),
]


@pytest.mark.parametrize("failure", RETRIED, ids=["429 ms", "429 s", "503", "500", "hangs up"])
async def test_sdk_tries_again_after_a_failure_before_the_first_byte(stage: Stage, stream: bool, failure: Any) -> None:
    stage.model.play(failure, text("At last."))
    async with openai.AsyncOpenAI(
        base_url=f"{stage.gateway.url}/v1", api_key="unused", max_retries=1, timeout=4 * WAIT_S
    ) as sdk:
        if stream:
            async with sdk.responses.stream(model="m", input="Hi") as events:
                said = (await events.get_final_response()).output_text
        else:
            said = (await sdk.responses.create(model="m", input="Hi")).output_text

    assert said == "At last."
    assert len(stage.model.asked) == 2
