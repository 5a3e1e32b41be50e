"""What a real Envoy does by itself with stateless requests: no worker runs here, so whatever passes a chain is 503."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest
import pytest_asyncio

from attache_core.json_codec import Json, encode
from attache_envoy.gateway import parse_gateway
from envoy_process import RecordingUpstream, RunningEnvoy, recording_upstream, running_envoy
from gateway_fakes import FILTERS

pytestmark = pytest.mark.asyncio(loop_scope="module")

KEY = "key-of-acme-0123456789"
STATELESS: Json = {"model": "m", "input": "Hi", "store": False}
GATEWAY = """
listen: 127.0.0.1:0
placement: PLACEMENT
authentication: {api_keys: {acme: KEY}}
upstreams: {default: {url: "URL/base", dialect: openai}}
chains:
  responses:
    - envoy:
        name: envoy.filters.http.lua
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua
          default_source_code:
            inline_string: |
              function envoy_on_request(handle) handle:headers():add("x-lua", "seen") end
              function envoy_on_response(handle) handle:headers():add("x-lua", "answered") end
    - filter: validate
    - filter: tool_dispatch
      loop: [{filter: upstream_round}]
routes:
  - {match: {path: /v1/responses}, chain: responses, bypass: stateless}
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def upstream() -> AsyncIterator[RecordingUpstream]:
    async with recording_upstream() as server:
        yield server


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["fused", "split"])
async def envoy(
    request: pytest.FixtureRequest, upstream: RecordingUpstream, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[RunningEnvoy]:
    text = GATEWAY.replace("PLACEMENT", request.param).replace("KEY", KEY).replace("URL", upstream.url)
    gateway = parse_gateway(text, "gateway.yaml", filters=FILTERS, environ={})
    async with running_envoy(gateway, tmp_path_factory.mktemp("run")) as running:
        yield running


async def post(envoy: RunningEnvoy, body: Json, key: str = KEY, **headers: str) -> httpx.Response:
    sent = {"content-type": "application/json", "authorization": f"Bearer {key}", **headers}
    return await envoy.client.post("/v1/responses", content=encode(body), headers=sent)


async def test_stateless_request_needs_no_worker_and_a_stateful_one_fails_closed(
    envoy: RunningEnvoy, upstream: RecordingUpstream
) -> None:
    asked = len(upstream.heads)

    bypassed = await post(envoy, STATELESS)
    chained = await post(envoy, {**STATELESS, "store": True})

    assert (bypassed.status_code, bypassed.text, chained.status_code) == (200, "{}", 503)
    assert [head[0] for head in upstream.heads[asked:]] == ["POST /base/v1/responses HTTP/1.1"]


async def test_bypassed_request_shows_a_key_and_the_upstream_sees_neither_it_nor_our_headers(
    envoy: RunningEnvoy, upstream: RecordingUpstream
) -> None:
    asked = len(upstream.heads)
    refused = await post(envoy, STATELESS, key="another-key-0123456789")
    assert (refused.status_code, len(upstream.heads)) == (503, asked)  # the chain sees the 401, and has no worker

    answer = await post(envoy, STATELESS, **{"x-attache-tenant": "other", "accept-encoding": "gzip"})

    names = {line.partition(":")[0] for line in upstream.heads[-1][1:]}
    assert "authorization" not in names
    assert not any(name.startswith("x-attache-") for name in names)
    assert (upstream.header("accept-encoding"), upstream.header("accept")) == (["identity"], ["application/json"])
    assert upstream.header("host") == [upstream.url.removeprefix("http://")]
    assert "x-attache-leak" not in answer.headers
    assert "x-request-id" in answer.headers


async def test_filter_above_the_hosted_ones_sees_what_is_bypassed(
    envoy: RunningEnvoy, upstream: RecordingUpstream
) -> None:
    answer = await post(envoy, STATELESS)

    assert (upstream.header("x-lua"), answer.headers["x-lua"]) == (["seen"], "answered")


async def test_metadata_that_lets_requests_past_cannot_be_sent(
    envoy: RunningEnvoy, upstream: RecordingUpstream
) -> None:
    forged = {"attache.bypass": "stateless", "x-envoy-dynamic-metadata": "attache.bypass.stateless=true"}

    answer = await post(envoy, {**STATELESS, "store": True}, **forged)

    assert answer.status_code == 503
