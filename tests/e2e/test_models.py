"""Upstreams that say which models they have: each request reaches the one that has its model, in all its rounds."""

from __future__ import annotations

import gzip
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass

import httpx
import pytest
import pytest_asyncio

from attache_core.json_codec import Json, encode
from attache_core.testing.model_script import call, function_calls, text
from e2e.recording_server import RecordingServer, recording_server
from e2e.stage import Stage, answered, open_stage

OTHERS = "exact: {url: 'EXACT', models: [llama-70b]}, family: {url: 'FAMILY', models: ['llama-*', 'qwen-*']}"
CHAT = "chat: {url: MODEL, api: chat_completions, models: [chat-model]}"
LUA = """
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua
          default_source_code: {inline_string: 'function envoy_on_response(h) h:headers():add("x-passed", "WHERE") end'}
"""
CHAINS = f"""
chains:
  responses:
    - envoy:
        name: first{LUA.replace("WHERE", "first")}
    - filter: validate
    - filter: persist
    - filter: rehydrate
    - filter: tool_dispatch
      loop:
        - envoy:
            name: inner{LUA.replace("WHERE", "inner").replace("        ", "            ")}
        - filter: upstream_round
"""


@dataclass(frozen=True)
class Models:
    """A gateway before two recording servers and the scripted model server, which has all other models."""

    stage: Stage
    servers: dict[str, RecordingServer]

    async def post(self, body: Json | bytes, path: str = "/v1/responses", **headers: str) -> httpx.Response:
        for server in self.servers.values():
            server.take()
        content = body if isinstance(body, bytes) else encode(body)
        sent = {"content-type": "application/json", **headers}
        return await self.stage.client.post(path, content=content, headers=sent)

    def asked(self) -> list[str]:
        """The servers that were asked since the last post, once for each time."""
        return [name for name, server in self.servers.items() for _ in server.take()]


async def opened(
    stack: AsyncExitStack,
    placement: str,
    tmp: pytest.TempPathFactory,
    *,
    gateway_yaml: str = "",
    upstream_yaml: str = "",
) -> Models:
    servers = {name: await stack.enter_async_context(recording_server()) for name in ("exact", "family")}
    others = OTHERS.replace("EXACT", servers["exact"].url).replace("FAMILY", servers["family"].url)
    entered = open_stage(
        placement,
        tmp.mktemp(f"models-{placement}"),
        gateway_yaml=gateway_yaml,
        upstream_yaml=upstream_yaml,
        other_upstreams_yaml=f"{others}, {CHAT}",
        only_the_api=False,
    )
    return Models(await stack.enter_async_context(entered), servers)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def shared_models(placement: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Models]:
    async with AsyncExitStack() as stack:
        yield await opened(stack, placement, tmp_path_factory, gateway_yaml=CHAINS)


@pytest.fixture
def models(shared_models: Models) -> Models:
    shared_models.stage.model.play(text("Hello."))
    return shared_models


@pytest.mark.parametrize(
    ("model", "server"),
    [("llama-70b", ["exact"]), ("llama-70b-next", ["family"]), ("qwen-3", ["family"]), ("other", [])],
)
async def test_request_reaches_the_upstream_that_has_its_model(
    models: Models, stream: bool, model: str, server: list[str]
) -> None:
    response = await models.post({"model": model, "input": "Hi", "stream": stream})

    answer = answered(response)
    assert (answer.status, answer.text) == (200, "Recorded." if server else "Hello.")
    assert models.asked() == server
    assert [body["model"] for body in models.stage.model.asked] == ([] if server else [model])


async def test_model_is_read_as_the_chain_reads_it(models: Models) -> None:
    bodies = [
        rb'{"mod\u0065l": "qwen\u002d3", "input": "Hi"}',
        b'{"model": "llama-70b", "model": "qwen-3", "input": "Hi"}',
        encode({"input": "x" * 3_000_000, "model": "qwen-3"}),
    ]
    for body in bodies:
        response = await models.post(body, **{"content-type": "application/x-www-form-urlencoded"})
        assert (response.status_code, models.asked()) == (200, ["family"])


async def test_later_rounds_stay_with_the_upstream_of_the_model(models: Models, stream: bool) -> None:
    models.stage.model.play(function_calls(call("echo", {"message": "x"})), text("Done."))
    tools = [models.stage.mcp_tool()]

    response = await models.post({"model": "chat-model", "input": "Hi", "tools": tools, "stream": stream})

    assert answered(response).text == "Done."
    assert [request.path for request in models.stage.model.requests] == ["/v1/chat/completions"] * 2
    assert models.asked() == []


async def test_conversation_may_go_on_with_the_model_of_another_upstream(models: Models) -> None:
    first = await models.post({"model": "qwen-3", "input": "Hi"})
    models.asked()

    second = await models.post({"model": "llama-70b", "input": "And?", "previous_response_id": first.json()["id"]})

    assert (second.status_code, models.asked()) == (200, ["exact"])


async def test_filters_of_envoy_see_each_exchange_once_whichever_upstream_has_the_model(models: Models) -> None:
    for model in ("llama-70b", "qwen-3", "other"):
        models.stage.model.play(text("Hello."))
        response = await models.post({"model": model, "input": "Hi"})
        assert response.headers.get_list("x-passed") == ["first"]


async def test_route_without_a_chain_goes_by_the_model_as_well(models: Models) -> None:
    response = await models.post({"model": "llama-70b", "input": "Hi"}, "/v1/embeddings")

    assert (response.status_code, models.asked()) == (200, ["exact"])


async def test_request_that_names_no_model_is_answered_as_its_chain_answers(models: Models) -> None:
    missing = await models.post({"input": "Hi"})
    broken = await models.post(b"{")

    assert (missing.status_code, missing.json()["error"]["code"]) == (400, "missing_required_parameter")
    assert (broken.status_code, broken.json()["error"]["type"]) == (400, "invalid_request_error")
    assert models.asked() == []


async def test_compressed_body_and_one_over_the_limit_are_refused_before_a_model_is_known(models: Models) -> None:
    body = encode({"model": "llama-70b", "input": "Hi"})

    compressed = await models.post(gzip.compress(body), **{"content-encoding": "gzip"})
    large = await models.post(encode({"model": "llama-70b", "input": "x" * (10 * 2**20)}))

    assert (compressed.status_code, compressed.json()["error"]["code"]) == (415, "unsupported_content_encoding")
    assert (large.status_code, large.json()["error"]["code"]) == (413, "request_too_large")
    assert models.asked() == []


async def test_unknown_model_is_404_where_every_upstream_says_what_it_has(
    placement: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    async with AsyncExitStack() as stack:
        models = await opened(stack, placement, tmp_path_factory, upstream_yaml="models: [demo]")
        for path in ("/v1/responses", "/v1/chat/completions"):
            response = await models.post({"model": "nobody's", "input": "Hi"}, path)
            error = response.json()["error"]
            assert (response.status_code, error["code"], error["param"]) == (404, "model_not_found", "model")
            assert error["type"] == "invalid_request_error"
            assert not any(name in error["message"] for name in ("llama", "qwen", "demo", "nobody"))
        assert (models.asked(), models.stage.model.asked) == ([], [])
