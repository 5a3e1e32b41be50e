"""`bypass: stateless`: what Envoy lets past the chain, the chain would only have passed on."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass

import httpx
import pytest
import pytest_asyncio
from hypothesis import Phase, given, settings

from attache_core.json_codec import Json, encode
from e2e.recording_server import ANSWER, MARK, STREAM, Recorded, RecordingServer, recording_server
from e2e.stage import WAIT_S, Stage, answered, open_stage
from fuzz.create_requests import FUNCTION
from fuzz.stateless_requests import JSON_HEADERS, Sent, requests

CASES = 60
"""Generated requests, for each placement."""

BYPASSED, CHAINED = "/v1/responses", "/chain/v1/responses"
ROUTES = f"""
routes:
  - {{match: {{path: {BYPASSED}, methods: [POST]}}, chain: responses, upstream: recorder, bypass: stateless}}
  - {{match: {{path: {CHAINED}, methods: [POST]}}, chain: responses, upstream: recorder}}
"""
MISTAKES = "http.gateway.lua.errors"
"""How often Envoy has logged a mistake of the script."""
STATELESS: Json = {"model": "m", "input": "Hi", "store": False}
OWN_NAMES = {"x-request-id"}
"""Headers that differ from one request to the next."""


@dataclass(frozen=True)
class Pair:
    """A gateway with a route that is bypassed and one that is not, before one server."""

    stage: Stage
    recorder: RecordingServer
    client: httpx.AsyncClient

    async def send(self, path: str, sent: Sent) -> tuple[httpx.Response, list[Recorded]]:
        """The answer, and what reached the server."""
        self.recorder.take()
        response = await self.client.post(path + sent.query, content=sent.body, headers=sent.headers)
        return response, self.recorder.take()

    async def is_bypassed(self, body: Json | bytes, headers: dict[str, str] | None = None, query: str = "") -> bool:
        content = body if isinstance(body, bytes) else encode(body)
        response, _ = await self.send(BYPASSED, Sent(content, JSON_HEADERS if headers is None else headers, query))
        return MARK in response.headers


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def pair(placement: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Pair]:
    folder = tmp_path_factory.mktemp(f"bypass-{placement}")
    async with recording_server() as recorder:
        others = f"recorder: {{url: '{recorder.url}', dialect: openai}}"
        async with (
            open_stage(placement, folder, gateway_yaml=ROUTES, other_upstreams_yaml=others) as stage,
            httpx.AsyncClient(base_url=stage.gateway.url, timeout=2 * WAIT_S) as client,
        ):
            yield Pair(stage, recorder, client)


def drawn() -> list[Sent]:
    """The same requests in every run."""
    examples: list[Sent] = []

    @settings(max_examples=CASES, derandomize=True, database=None, deadline=None, phases=[Phase.generate])
    @given(requests)
    def take(example: Sent) -> None:
        examples.append(example)

    take()
    return examples


def meaning(recorded: Recorded) -> tuple[str, object, object]:
    """What a server makes of a request: numbers of one value but another type differ."""
    headers = [pair for pair in recorded.headers if pair[0] not in OWN_NAMES]
    return recorded.request_line, headers, json.dumps(json.loads(recorded.body), sort_keys=True)


async def check_bypassed(pair: Pair, sent: Sent) -> bool:
    """Send a request; where it is bypassed, the chain passes the same one on, and it is the same to the server."""
    response, arrived = await pair.send(BYPASSED, sent)
    if MARK not in response.headers:
        return False
    assert [each.body for each in arrived] == [sent.body]
    streams = json.loads(sent.body).get("stream") is True
    assert (response.status_code, response.content) == (200, STREAM if streams else ANSWER)
    chain_response, chain_arrived = await pair.send(CHAINED, sent)
    answer = answered(chain_response)
    assert (answer.status, answer.body.get("status"), bool(answer.events)) == (200, "completed", streams), sent
    assert list(map(meaning, arrived)) == list(map(meaning, chain_arrived)), sent
    return True


async def test_what_is_bypassed_the_chain_would_have_passed_on_unchanged(pair: Pair) -> None:
    bypassed = [sent for sent in drawn() if await check_bypassed(pair, sent)]

    assert len(bypassed) > CASES / 10
    assert {json.loads(sent.body).get("stream", False) for sent in bypassed} == {False, True}


@pytest.mark.parametrize("stream", [False, True])
async def test_stateless_request_is_answered_by_the_server_in_its_own_words(pair: Pair, stream: bool) -> None:
    sent = Sent(encode({**STATELESS, "stream": stream, "tools": [FUNCTION], "seed": 1}))

    response, arrived = await pair.send(BYPASSED, sent)

    assert (response.status_code, response.content) == (200, STREAM if stream else ANSWER)
    assert response.headers["x-upstream-request-id"] == "req_theirs"
    assert [(each.request_line, each.body) for each in arrived] == [("POST /v1/responses HTTP/1.1", sent.body)]
    asked_for = dict(arrived[0].headers)["accept"]
    assert asked_for == ("text/event-stream" if stream else "application/json")


@pytest.mark.parametrize(
    "more",
    [
        {"store": True},
        {"store": None},
        {"previous_response_id": None},
        {"conversation": None},
        {"background": False},
        {"truncation": "auto"},
        {"include": []},
        {"context_management": None},
        {"metadata": {"store": "false"}},
        {"tools": [{"type": "web_search"}]},
        {"tools": [{"type": "mcp", "server_label": "x", "server_url": "http://127.0.0.1:1/"}]},
        {"tools": []},
        {"tool_choice": "auto"},
        {"input": [{"type": "item_reference", "id": "msg_1"}]},
        {"input": [{"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True}]},
        {"temperature": 3},
        {"max_tokens": 5},
        {"stream_options": {"include_obfuscation": False}},
    ],
)
async def test_what_the_chain_would_answer_or_change_is_not_bypassed(pair: Pair, more: Json) -> None:
    assert not await pair.is_bypassed({**STATELESS, **more})


async def test_store_false_must_stand_at_the_top_and_once(pair: Pair) -> None:
    hidden = [
        b'{"model": "m", "input": "Hi", "k": {"store": false}}',
        b'{"model": "m", "input": "Hi", "store": false, "store": true}',
        rb'{"model": "m", "input": "Hi", "store": false, "\u0073tore": true}',
        b'{"model": "m", "input": "Hi", "Store": false}',
        b'{"model": "m", "input": "say \\"store\\": false"}',
        b'{"model": "m", "input": "Hi", "store": false} {}',
        b'\xef\xbb\xbf{"model": "m", "input": "Hi", "store": false}',
        b'{"model": "m", "input": "\xff", "store": false}',
        b'{"model": "m", "input": "\xed\xa0\x80", "store": false}',
    ]

    assert [await pair.is_bypassed(body) for body in hidden] == [False] * len(hidden)
    assert await pair.is_bypassed(b' {"store" : false ,\n"input":"Hi \\ud83d\xc3\xa9\xf0\x9f\x98\x80","model":"m"} ')


@pytest.mark.parametrize(
    ("headers", "query"),
    [
        ({}, ""),
        ({"content-type": "application/json; charset=utf-8"}, ""),
        ({**JSON_HEADERS, "content-encoding": "identity"}, ""),
        (JSON_HEADERS, "?a=1"),
    ],
)
async def test_request_with_odd_headers_or_a_query_passes_the_chain(
    pair: Pair, headers: dict[str, str], query: str
) -> None:
    assert not await pair.is_bypassed(STATELESS, headers, query)


async def test_body_over_the_bound_or_of_unknown_length_passes_the_chain_whole(pair: Pair) -> None:
    bound = pair.stage.settings.limits.max_bypass_bytes
    rest = len(encode({**STATELESS, "input": ""}))
    bodies = [encode({**STATELESS, "input": "x" * (size - rest)}) for size in (bound, bound + 1, 2 * 2**20)]

    assert [await pair.is_bypassed(body) for body in bodies] == [True, False, False]

    async def chunks() -> AsyncIterator[bytes]:
        yield encode(STATELESS)

    pair.recorder.take()
    mistakes = await pair.stage.stat(MISTAKES)
    response = await pair.client.post(BYPASSED, content=chunks(), headers=JSON_HEADERS)
    assert (response.status_code, MARK in response.headers) == (200, False)
    assert await pair.stage.stat(MISTAKES) == mistakes
    assert [json.loads(each.body)["input"] for each in pair.recorder.take()] == ["Hi"]


async def test_statistics_count_what_was_bypassed(pair: Pair) -> None:
    counter = "vhost.gateway.route.stateless.upstream_rq_total"
    before = await pair.stage.stat(counter)

    await pair.is_bypassed(STATELESS)
    await pair.is_bypassed({**STATELESS, "store": True})

    assert await pair.stage.stat(counter) == before + 1
