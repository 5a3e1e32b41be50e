"""A chain in which nothing calls below twice: the death of a streaming model is told and stored there as well."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from attache_core.events.event import Event
from attache_core.testing.model_script import Reply, dies_after, ends_without_terminal, stalls_after, text
from core.events.canonical_stream import check_stream
from e2e.stage import Stage, decode_events, open_stage

CHAIN = """
chains:
  responses:
    - filter: validate
    - filter: persist
    - filter: rehydrate
    - filter: upstream_round
"""
UPSTREAM = "headers_timeout_s: 1, idle_timeout_s: 1"


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def short_chain(placement: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    folder = tmp_path_factory.mktemp(f"short-{placement}")
    async with open_stage(placement, folder, gateway_yaml=CHAIN, upstream_yaml=UPSTREAM) as stage:
        yield stage


async def test_turn_and_its_continuation_are_answered(short_chain: Stage, stream: bool) -> None:
    short_chain.model.play(text("One."), text("Two."))

    first = await short_chain.ask(input="Count", stream=stream)
    second = await short_chain.ask(input="Go on", previous_response_id=first.body["id"], stream=stream)

    assert [first.text, second.text] == ["One.", "Two."]
    assert len(short_chain.model.asked[1]["input"]) == 3


async def test_model_that_dies_midstream_is_a_failed_response_that_is_stored(short_chain: Stage) -> None:
    short_chain.model.play(stalls_after(5, text("This will never be said whole.")))
    body = {"model": "m", "input": "Hi", "stream": True}
    server = short_chain.model.server
    assert server is not None

    async with short_chain.client.stream("POST", "/v1/responses", json=body) as response:
        chunks = response.aiter_bytes()
        begun = await anext(chunks)
        await server.disconnect_all()
        rest = [chunk async for chunk in chunks]

    await check_failed(short_chain, begun + b"".join(rest))


@pytest.mark.parametrize("reply", [ends_without_terminal(), stalls_after(5)], ids=["ends", "falls silent"])
async def test_stream_that_stops_is_a_failed_response_that_is_stored(short_chain: Stage, reply: Reply) -> None:
    short_chain.model.play(reply)

    response = await short_chain.client.post("/v1/responses", json={"model": "m", "input": "Hi", "stream": True})

    await check_failed(short_chain, response.content)


async def check_failed(stage: Stage, stream: bytes) -> None:
    events = decode_events(stream)
    check_stream([Event(event["type"], event) for event in events])
    failed = events[-1]["response"]
    assert (events[-1]["type"], failed["status"]) == ("response.failed", "failed")
    assert (await stage.get(f"/v1/responses/{failed['id']}")).json() == failed
    refused = await stage.ask(input="Go on", previous_response_id=failed["id"])
    assert (refused.status, refused.body["error"]["param"]) == (400, "previous_response_id")


async def test_model_that_dies_before_it_answers_is_502_and_nothing_is_stored(short_chain: Stage, stream: bool) -> None:
    short_chain.model.play(dies_after(0))

    answer = await short_chain.ask(input="Hi", stream=stream)

    assert (answer.status, answer.body["error"]["type"]) == (502, "server_error")


async def test_model_that_is_silent_for_too_long_is_504_and_nothing_is_stored(short_chain: Stage, stream: bool) -> None:
    short_chain.model.play(stalls_after(None))

    answer = await short_chain.ask(input="Hi", stream=stream)

    assert (answer.status, answer.body["error"]["type"]) == (504, "server_error")
    assert short_chain.model.server is not None
    await short_chain.model.server.wait_for_idle()
