"""What a compiled gateway does in a real Envoy, in front of a recording server."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import httpx
import pytest
import pytest_asyncio

from attache_envoy.gateway import Gateway, parse_gateway
from attache_filters.extproc.wire import ext_proc_pb2 as pb
from envoy_process import (
    WAIT_S,
    FakeWorker,
    RecordingUpstream,
    RunningEnvoy,
    recording_upstream,
    running_envoy,
    running_worker,
)
from gateway_fakes import FILTERS

pytestmark = pytest.mark.asyncio(loop_scope="module")

SERVER, INVALID = "server_error", "invalid_request_error"


def error(kind: str, code: str, message: str) -> dict[str, object]:
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


UNAVAILABLE = error(SERVER, "unavailable", "The gateway cannot take this request now.")
NOT_FOUND = error(INVALID, "not_found", "There is nothing at this path.")
REFUSED = error(INVALID, "request_refused", "The request cannot be answered as it is.")
OUT_OF_REACH = error(SERVER, "upstream_unavailable", "The inference server is out of reach.")
BROKE_OFF = error(SERVER, "upstream_broke_off", "The inference server broke off its answer.")
NOT_HTTP = error(SERVER, "bad_upstream_response", "The inference server sent what is not an HTTP answer.")
SILENT = error(SERVER, "upstream_timeout", "The inference server was silent for too long.")


def gateway(upstream: RecordingUpstream) -> Gateway:
    text = f"""
listen: 127.0.0.1:0
upstreams:
  default: {{url: {upstream.url}}}
  prefixed: {{url: "{upstream.url}/base"}}
  gone: {{url: "http://127.0.0.1:1"}}
chains:
  resources:
    - envoy:
        name: envoy.filters.http.lua
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua
          default_source_code:
            inline_string: |
              function envoy_on_request(handle) handle:headers():add("x-lua", "seen") end
    - {{filter: resources}}
routes:
  - {{match: {{path: /v1/prefixed}}, upstream: prefixed}}
  - {{match: {{path: /v1/gone}}, upstream: gone}}
  - {{match: {{path: "/v1/things/{{id}}"}}, chain: resources}}
"""
    return parse_gateway(text, "gateway.yaml", filters=FILTERS, environ={})


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def upstream() -> AsyncIterator[RecordingUpstream]:
    async with recording_upstream() as server:
        yield server


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def envoy(upstream: RecordingUpstream, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningEnvoy]:
    async with running_envoy(gateway(upstream), tmp_path_factory.mktemp("run")) as running:
        yield running


@pytest.fixture(autouse=True)
def _nothing_seen(upstream: RecordingUpstream) -> None:
    upstream.heads.clear()


def answer(response: httpx.Response) -> tuple[int, str, object]:
    return response.status_code, response.headers["content-type"], response.json()


async def send(envoy: RunningEnvoy, method: str, path: str, headers: dict[str, str] | None = None) -> httpx.Response:
    """Send a request whose path is not tidied up."""
    request = envoy.client.build_request(method, "/", headers=headers)
    request.url = request.url.copy_with(raw_path=path.encode())
    return await envoy.client.send(request)


STATE = [
    ("GET", "/v1/responses"),
    ("POST", "/v1/responses/"),
    ("POST", "//v1/responses/"),
    ("POST", "/v1/./responses/"),
    ("POST", "/v1/models/../responses/"),
    ("POST", "/v1/%72esponses/"),
    ("POST", "/v1\\responses/"),
    ("DELETE", "/v1/responses/resp_1"),
    ("POST", "/v1/responses/resp_1/cancel"),
    ("GET", "/v1/responses/resp_1/input_items"),
    ("POST", "/v1/responses/compact"),
    ("POST", "/v1/conversations"),
    ("GET", "/v1/conversations/conv_1/items/msg_1"),
]
"""What only a server that keeps state could answer."""


@pytest.mark.parametrize(("method", "path"), STATE)
async def test_what_only_state_could_answer_never_reaches_the_upstream(
    envoy: RunningEnvoy, upstream: RecordingUpstream, method: str, path: str
) -> None:
    assert answer(await send(envoy, method, path)) == (503, "application/json", UNAVAILABLE)
    assert upstream.heads == []


@pytest.mark.parametrize(
    "path", ["/v1/responses%2f", "/v1/responses%2Fresp_1", "/v1%2fresponses", "/v1/responses%5cresp_1", "/%2f"]
)
async def test_path_with_an_escaped_slash_is_refused(
    envoy: RunningEnvoy, upstream: RecordingUpstream, path: str
) -> None:
    assert answer(await send(envoy, "POST", path)) == (400, "application/json", REFUSED)
    assert upstream.heads == []


@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/v1/responses"), ("GET", "/v1/responses/resp_1"), ("GET", "/ready")]
)
async def test_request_without_workers_is_answered_503_and_the_upstream_sees_nothing(
    envoy: RunningEnvoy, upstream: RecordingUpstream, method: str, path: str
) -> None:
    response = await envoy.client.request(method, path, content=b"{}")
    assert answer(response) == (503, "application/json", UNAVAILABLE)
    assert response.headers["x-request-id"]
    assert upstream.heads == []


async def test_health_is_answered_by_envoy(envoy: RunningEnvoy, upstream: RecordingUpstream) -> None:
    assert answer(await envoy.client.get("/health")) == (200, "application/json", {"status": "ok"})
    assert upstream.heads == []


@pytest.mark.parametrize("path", ["/", "/nowhere", "/v10/models", "/v1/../etc", "/ready/"])
async def test_path_that_no_route_takes_is_answered_404(
    envoy: RunningEnvoy, upstream: RecordingUpstream, path: str
) -> None:
    assert answer(await envoy.client.get(path)) == (404, "application/json", NOT_FOUND)
    assert upstream.heads == []


@pytest.mark.parametrize(
    ("method", "path", "arrives"),
    [
        ("GET", "/v1/models", "/v1/models"),
        ("GET", "/v1/models/org/name?x=%20%2F", "/v1/models/org/name?x=%20%2F"),
        ("POST", "/v1/chat/completions", "/v1/chat/completions"),
        ("POST", "/v1/responses_of_others", "/v1/responses_of_others"),
        ("GET", "//v1//models", "/v1/models"),
        ("GET", "/v1/prefixed?q", "/base/v1/prefixed?q"),
    ],
)
async def test_everything_else_under_v1_is_passed_on_by_envoy_alone(
    envoy: RunningEnvoy, upstream: RecordingUpstream, method: str, path: str, arrives: str
) -> None:
    response = await send(envoy, method, path, {"accept-encoding": "gzip"})
    assert (response.status_code, response.text) == (200, "{}")
    assert upstream.heads[0][0] == f"{method} {arrives} HTTP/1.1"
    assert upstream.header("accept-encoding") == ["gzip"]
    assert upstream.header("host") == [f"127.0.0.1:{upstream.port}"]


async def test_internal_headers_pass_neither_from_a_client_nor_to_it(
    envoy: RunningEnvoy, upstream: RecordingUpstream
) -> None:
    forged = {"x-attache-tenant": "other", "X-ATTACHE-New-Name": "1", "x-attached": "kept"}
    response = await envoy.client.get("/v1/models", headers=forged)
    assert [name for name in response.headers if name.startswith("x-attache-")] == []
    assert [line for line in upstream.heads[0] if line.lower().startswith("x-attache")] == ["x-attached: kept"]


async def test_upstream_that_cannot_be_reached_is_answered_503(envoy: RunningEnvoy) -> None:
    assert answer(await envoy.client.get("/v1/gone")) == (503, "application/json", OUT_OF_REACH)


@asynccontextmanager
async def envoy_before(said: bytes | None, folder: Path) -> AsyncIterator[RunningEnvoy]:
    """A gateway whose inference server answers every request with these bytes and hangs up; None: with silence."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        if said is None:
            await reader.read()
        else:
            writer.write(said)
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        hasty = f"{{url: '{url}', headers_timeout_s: 0.2, idle_timeout_s: 0.1}}"
        text = f"listen: 127.0.0.1:0\nupstreams: {{default: {hasty}}}\n"
        short = parse_gateway(text, "g.yaml", filters=FILTERS, environ={})
        async with running_envoy(short, folder) as running:
            yield running
        server.close()


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (b"", (502, BROKE_OFF)),
        (b"HTTP/1.1 200 OK\r\nx-", (502, NOT_HTTP)),
        (b"Hello.\r\n\r\n", (502, NOT_HTTP)),
        (None, (504, SILENT)),
    ],
)
async def test_upstream_that_fails_before_it_answers_is_named_as_the_cause(
    said: bytes | None, expected: tuple[int, object], tmp_path: Path
) -> None:
    async with envoy_before(said, tmp_path) as envoy, envoy.loop_client("responses/0") as client:
        response = await client.post("/v1/responses", json={})
    assert answer(response) == (expected[0], "application/json", expected[1])


async def test_upstream_that_dies_within_its_answer_ends_the_answer_of_a_loop_listener(tmp_path: Path) -> None:
    begun = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nHello\r\n"
    async with envoy_before(begun, tmp_path) as envoy, envoy.loop_client("responses/0") as client:
        with pytest.raises(httpx.RemoteProtocolError):
            await client.post("/v1/responses", json={})


async def test_request_that_does_not_arrive_is_answered_408(upstream: RecordingUpstream, tmp_path: Path) -> None:
    text = f"listen: 127.0.0.1:0\nupstream: {upstream.url}\ntimeouts: {{request_s: 0.2}}"
    async with running_envoy(parse_gateway(text, "g.yaml", filters=FILTERS, environ={}), tmp_path) as envoy:
        reader, writer = await asyncio.open_connection("127.0.0.1", envoy.port)
        writer.write(b"POST /v1/models HTTP/1.1\r\nhost: h\r\ncontent-length: 2\r\n\r\n{")
        async with asyncio.timeout(WAIT_S):
            head = await reader.readuntil(b"\r\n\r\n")
        writer.close()
    assert head.split(b"\r\n")[0] == b"HTTP/1.1 408 Request Timeout"


@pytest.mark.parametrize("path", ["/v1/responses", "/v1/realtime", "/health"])
async def test_websocket_upgrade_is_refused_at_once(
    envoy: RunningEnvoy, upstream: RecordingUpstream, path: str
) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", envoy.port)
    upgrade = "connection: Upgrade\r\nupgrade: WebSocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: a2V5\r\n"
    writer.write(f"GET {path} HTTP/1.1\r\nhost: h\r\n{upgrade}\r\n".encode())
    async with asyncio.timeout(WAIT_S):
        head = await reader.readuntil(b"\r\n\r\n")
    writer.close()
    expected = b"200 OK" if path == "/health" else b"426 Upgrade Required"
    assert head.split(b"\r\n")[0] == b"HTTP/1.1 " + expected
    assert upstream.heads == []


async def test_loop_listener_leads_to_the_upstream_and_keeps_the_request_id(
    envoy: RunningEnvoy, upstream: RecordingUpstream
) -> None:
    ours = {"x-attache-tenant": "t", "x-request-id": "11111111-2222-4333-8444-555555555555", "accept-encoding": "gzip"}
    async with envoy.loop_client("responses/0") as client:
        response = await client.post("/v1/responses", headers=ours, json={})
    assert (response.status_code, response.headers["x-request-id"]) == (200, ours["x-request-id"])
    assert [name for name in response.headers if name.startswith("x-attache-")] == []
    assert upstream.heads[0][0] == "POST /v1/responses HTTP/1.1"
    assert upstream.header("x-request-id") == [ours["x-request-id"]]
    assert (upstream.header("x-attache-tenant"), upstream.header("accept-encoding")) == ([], ["identity"])


def headers_answer(request: pb.ProcessingRequest, **mutations: str) -> pb.ProcessingResponse:
    change = pb.HeaderMutation(
        set_headers=[
            pb.HeaderValueOption(header=pb.HeaderValue(key=key.replace("_", "-"), raw_value=value.encode()))
            for key, value in mutations.items()
        ]
    )
    common = pb.CommonResponse(header_mutation=change)
    if request.HasField("request_headers"):
        return pb.ProcessingResponse(request_headers=pb.HeadersResponse(response=common))
    return pb.ProcessingResponse(response_headers=pb.HeadersResponse(response=common))


def echo(request: pb.ProcessingRequest) -> pb.ProcessingResponse | None:
    """Pass everything on, with an internal header added both ways."""
    match request.WhichOneof("request"):
        case "request_headers" | "response_headers":
            return headers_answer(request, x_attache_tenant="t")
        case "request_body":
            streamed = pb.StreamedBodyResponse(
                body=request.request_body.body, end_of_stream=request.request_body.end_of_stream
            )
            change = pb.CommonResponse(body_mutation=pb.BodyMutation(streamed_response=streamed))
            return pb.ProcessingResponse(request_body=pb.BodyResponse(response=change))
        case "response_body":
            streamed = pb.StreamedBodyResponse(
                body=request.response_body.body, end_of_stream=request.response_body.end_of_stream
            )
            change = pb.CommonResponse(body_mutation=pb.BodyMutation(streamed_response=streamed))
            return pb.ProcessingResponse(response_body=pb.BodyResponse(response=change))
    return None


def immediately(body: bytes) -> pb.ProcessingResponse:
    reply = pb.ImmediateResponse(status=pb.HttpStatus(code=413), body=body)
    return pb.ProcessingResponse(immediate_response=reply)


def fail(_: pb.ProcessingRequest) -> pb.ProcessingResponse:
    raise RuntimeError("a bug")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def worker(envoy: RunningEnvoy) -> AsyncIterator[FakeWorker]:
    worker = FakeWorker()
    async with running_worker(envoy.sockets.worker(0), worker):
        await envoy.until_healthy_workers(1)
        yield worker


@pytest.mark.parametrize(
    ("request_line", "segment"),
    [
        ("POST /v1/responses", "responses/0"),
        ("POST /v1/responses?x=1", "responses/0"),
        ("GET /v1/responses/resp_1", "resources/1"),
        ("GET /v1/things/1", "resources/1"),
        ("GET /ready", "resources/1"),
        ("POST /v1/responses/", "resources/1"),
        ("DELETE /v1/responses/resp_1", "resources/1"),
        ("GET /v1/conversations", "resources/1"),
    ],
)
async def test_request_passes_the_segment_of_its_route_and_no_other(
    envoy: RunningEnvoy, upstream: RecordingUpstream, worker: FakeWorker, request_line: str, segment: str
) -> None:
    worker.behave = echo
    worker.segments.clear()
    method, path = request_line.split()
    response = await envoy.client.request(method, path, content=b"{}" if method == "POST" else None)
    assert (response.status_code, response.text, worker.segments) == (200, "{}", [segment])
    assert [name for name in response.headers if name.startswith("x-attache-")] == []
    assert upstream.heads[0][0] == f"{request_line} HTTP/1.1"
    assert (upstream.header("x-attache-tenant"), upstream.header("accept-encoding")) == ([], ["identity"])
    assert upstream.header("x-lua") == (["seen"] if segment == "resources/1" else [])


async def test_headers_over_the_limit_are_answered_431(
    envoy: RunningEnvoy, upstream: RecordingUpstream, worker: FakeWorker
) -> None:
    worker.behave = echo
    worker.segments.clear()
    response = await envoy.client.get("/v1/models", headers={"x-big": "x" * 61 * 1024})
    too_large = error(INVALID, "headers_too_large", "The request's headers are too large.")
    assert answer(response) == (431, "application/json", too_large)
    assert (worker.segments, upstream.heads) == ([], [])


async def test_request_that_is_not_http_is_answered_400_without_asking_a_worker(
    envoy: RunningEnvoy, worker: FakeWorker
) -> None:
    worker.segments.clear()
    reader, writer = await asyncio.open_connection("127.0.0.1", envoy.port)
    writer.write(b"POST /v1/responses HTTP/1.1\r\nhost: h\r\ncontent-length: x\r\n\r\n")
    async with asyncio.timeout(WAIT_S):
        head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    assert (head.split(b"\r\n")[0], json.loads(body)) == (b"HTTP/1.1 400 Bad Request", REFUSED)
    assert worker.segments == []


async def test_body_that_a_worker_wrote_is_left_alone(envoy: RunningEnvoy, worker: FakeWorker) -> None:
    body = b'{"error": {"message": "mine"}}'
    worker.behave = lambda _: immediately(body)
    response = await envoy.client.post("/v1/responses", json={})
    assert (response.status_code, response.content) == (413, body)


async def test_worker_that_fails_is_answered_503_and_the_upstream_sees_nothing(
    envoy: RunningEnvoy, upstream: RecordingUpstream, worker: FakeWorker
) -> None:
    worker.behave = fail
    response = await envoy.client.post("/v1/responses", json={})
    assert answer(response) == (503, "application/json", UNAVAILABLE)
    assert upstream.heads == []


async def test_worker_that_dies_costs_at_most_one_request(
    upstream: RecordingUpstream, tmp_path_factory: pytest.TempPathFactory
) -> None:
    body = json.dumps({"input": "x" * 10_000}).encode()
    async with AsyncExitStack() as stack:
        envoy = await stack.enter_async_context(running_envoy(gateway(upstream), tmp_path_factory.mktemp("run")))
        for index in range(2):
            worker = FakeWorker(lambda _: immediately(b"alive"))
            server = await stack.enter_async_context(running_worker(envoy.sockets.worker(index), worker))
        await envoy.until_healthy_workers(2)
        await server.stop(None)
        statuses = [(await envoy.client.post("/v1/responses", content=body)).status_code for _ in range(60)]
    assert Counter(statuses)[503] <= 1
    assert Counter(statuses)[413] >= 59
