"""The stream that a client sees: signs of life while nothing flows, padding, failures, and what is kept at most."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx
import openai
import pytest
import pytest_asyncio

from attache_core.events.event import Event
from attache_core.events.sse import SseDecoder
from attache_core.json_codec import Json, decode
from attache_core.testing.model_script import (
    Reply,
    call,
    function_calls,
    held,
    http_error,
    replay,
    says,
    stalls_after,
    text,
)
from core.events.canonical_stream import check_stream
from e2e.stage import WAIT_S, Stage, open_stage

INTERVAL_S = 0.2
MAX_RETAINED_BYTES = 64 * 1024
CHAIN = f"""
chains:
  responses:
    - filter: validate
    - filter: persist
    - filter: rehydrate
    - filter: tool_dispatch
      progress_interval_s: {INTERVAL_S}
      max_retained_bytes: {MAX_RETAINED_BYTES}
      loop:
        - filter: upstream_round
"""
SIGN = "response.in_progress"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def lively_stage(placement: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    async with open_stage(placement, tmp_path_factory.mktemp(f"lively-{placement}"), gateway_yaml=CHAIN) as stage:
        yield stage


@pytest.fixture
def lively(lively_stage: Stage) -> Stage:
    """A gateway that gives a sign of life soon and keeps little, shared by the tests of one placement."""
    lively_stage.model.play()
    lively_stage.mcp.release.clear()
    return lively_stage


class Reading:
    """A client that reads a stream, event by event."""

    def __init__(self, response: httpx.Response) -> None:
        self.response = response
        self.events: list[Json] = []
        self._chunks = response.aiter_bytes()
        self._decoder = SseDecoder()

    async def until(self, enough: Callable[[list[Json]], bool]) -> list[Json]:
        """Read on until that is true of the events so far."""
        async with asyncio.timeout(WAIT_S):
            while not enough(self.events):
                self.events += [decode(frame.data) for frame in self._decoder.feed(await anext(self._chunks))]
        return self.events

    async def to_the_end(self) -> list[Json]:
        """Read all, and check that it is one valid stream."""
        async with asyncio.timeout(WAIT_S):
            async for chunk in self._chunks:
                self.events += [decode(frame.data) for frame in self._decoder.feed(chunk)]
        check_stream([Event(event["type"], event) for event in self.events])
        return self.events


@asynccontextmanager
async def reading(stage: Stage, **body: Any) -> AsyncIterator[Reading]:
    request = {"model": "m", "input": "Hi", "stream": True, **body}
    async with stage.client.stream("POST", "/v1/responses", json=request) as response:
        yield Reading(response)


def signs(count: int, after: str | None = None) -> Callable[[list[Json]], bool]:
    """So many signs of life, after the first event of a type."""

    def enough(events: list[Json]) -> bool:
        types = [event["type"] for event in events]
        if after is not None:
            types = types[types.index(after) :] if after in types else []
        return types.count(SIGN) >= count

    return enough


async def test_model_that_is_silent_before_its_first_event(lively: Stage) -> None:
    go_on = asyncio.Event()
    lively.model.play(held(go_on, text("At last.")))

    async with reading(lively) as client:
        begun = await client.until(signs(3))
        assert (client.response.status_code, [event["type"] for event in begun]) == (
            200, ["response.created", SIGN, SIGN, SIGN],
        )  # fmt: skip
        go_on.set()
        events = await client.to_the_end()

    final = events[-1]["response"]
    assert final["output"][0]["content"][0]["text"] == "At last."
    assert (await lively.get(f"/v1/responses/{final['id']}")).json() == final


async def test_model_that_is_silent_between_its_events(lively: Stage) -> None:
    go_on = asyncio.Event()
    lively.model.play(held(go_on, text("One two three."), after_events=6))

    async with reading(lively) as client:
        await client.until(signs(2, after="response.output_text.delta"))
        go_on.set()
        events = await client.to_the_end()

    assert events[-1]["response"]["output"][0]["content"][0]["text"] == "One two three."


async def test_tool_that_takes_longer_than_the_interval(lively: Stage) -> None:
    lively.model.play(function_calls(call("slow", {"text": "late"})), text("Done."))

    async with reading(lively, tools=[lively.mcp_tool()]) as client:
        await client.until(signs(2, after="response.mcp_call_arguments.done"))
        lively.mcp.release.set()
        events = await client.to_the_end()

    last_sign = [event for event in events if event["type"] == SIGN][-1]
    assert last_sign["response"] == events[0]["response"]
    assert [item["type"] for item in events[-1]["response"]["output"]] == ["mcp_list_tools", "mcp_call", "message"]


async def test_sdk_reads_signs_of_life_wherever_they_come(lively: Stage) -> None:
    go_on = asyncio.Event()
    lively.model.play(function_calls(call("slow", {"text": "late"})), held(go_on, text("One two."), after_events=5))

    async with openai.AsyncOpenAI(
        base_url=f"{lively.gateway.url}/v1", api_key="unused", max_retries=0, timeout=4 * WAIT_S
    ) as sdk:
        tool: Any = lively.mcp_tool()
        async with asyncio.timeout(WAIT_S), sdk.responses.stream(model="m", input="Hi", tools=[tool]) as stream:
            kinds: list[str] = []
            async for event in stream:
                kinds.append(event.type)
                if event.type == SIGN and "response.mcp_call_arguments.done" in kinds:
                    (go_on if "response.output_text.delta" in kinds else lively.mcp.release).set()
            final = await stream.get_final_response()

    assert (final.output_text, kinds.count(SIGN) >= 3, kinds[-1]) == ("One two.", True, "response.completed")
    assert [item.type for item in final.output] == ["mcp_list_tools", "mcp_call", "message"]


async def test_waiting_client_gets_one_answer_however_long_it_takes(lively: Stage) -> None:
    lively.model.play(function_calls(call("slow", {"text": "late"})), text("Done."))

    async with asyncio.TaskGroup() as tasks:
        asking = tasks.create_task(lively.ask(input="Hi", tools=[lively.mcp_tool()]))
        await asyncio.wait({asking}, timeout=2 * INTERVAL_S)
        assert not asking.done()
        lively.mcp.release.set()

    assert (asking.result().status, asking.result().text) == (200, "Done.")


async def test_client_that_leaves_in_a_silence_ends_the_upstream_request(lively: Stage) -> None:
    lively.model.play(stalls_after(None))
    server = lively.model.server
    assert server is not None
    left = server.cancelled

    async with reading(lively) as client:
        await client.until(signs(2))

    await server.wait_for_disconnect(left + 1, timeout_s=WAIT_S)
    await lively.wait_until_idle()


async def test_refusal_before_the_interval_is_over_is_an_http_error(lively: Stage, stream: bool) -> None:
    lively.model.play(http_error(429, headers={"retry-after": "7"}))

    answer = await lively.ask(input="Hi", stream=stream)

    assert (answer.status, answer.headers["retry-after"]) == (429, "7")


async def test_refusal_after_a_sign_of_life_is_a_failed_response(lively: Stage) -> None:
    go_on = asyncio.Event()
    lively.model.play(held(go_on, http_error(429, headers={"retry-after": "7"})))

    async with reading(lively) as client:
        await client.until(signs(1))
        go_on.set()
        events = await client.to_the_end()

    assert events[-1]["type"] == "response.failed"
    assert events[-1]["response"]["error"]["code"]


def breaking() -> Reply:
    """The model says half of a message, and then that it failed."""
    message = {"type": "message", "id": "msg_1", "role": "assistant", "status": "in_progress", "content": []}
    place = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    said: list[Json] = [
        {"type": "response.created", "response": {"id": "resp_1", "status": "in_progress", "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": message},
        {"type": "response.content_part.added", **place, "part": {"type": "output_text", "text": ""}},
        {"type": "response.output_text.delta", **place, "delta": "Half"},
        {"type": "error", "error": {"code": "server_error", "message": "Out of memory."}},
    ]
    return replay([line for one in said for line in (f"event: {one['type']}\n", f"data: {json.dumps(one)}\n", "\n")])


@pytest.mark.parametrize("rounds", [1, 2])
async def test_failure_after_the_first_byte_closes_what_is_open_and_is_told_once(stage: Stage, rounds: int) -> None:
    first = says("One moment.", call("echo", {"text": "hi"}))
    stage.model.play(*[first][: rounds - 1], breaking())

    async with reading(stage, tools=[stage.mcp_tool()]) as client:
        events = await client.to_the_end()

    failed = events[-1]["response"]
    assert (events[-1]["type"], failed["status"], failed["error"]["message"]) == (
        "response.failed", "failed", "Out of memory.",
    )  # fmt: skip
    assert "error" not in [event["type"] for event in events]
    assert failed["output"][-1]["status"] == "incomplete"
    assert (await stage.get(f"/v1/responses/{failed['id']}")).json() == failed


async def test_sdk_gets_the_failed_response_with_what_was_said(stage: Stage) -> None:
    stage.model.play(breaking())
    async with openai.AsyncOpenAI(base_url=f"{stage.gateway.url}/v1", api_key="unused", max_retries=0) as sdk:
        last = [event async for event in await sdk.responses.create(model="m", input="Hi", stream=True)][-1]
    assert last.type == "response.failed"
    assert last.response.error is not None
    assert (last.response.error.message, last.response.output[0].type) == ("Out of memory.", "message")


# What is kept


def long_text(size: int, deltas: int) -> Reply:
    return text("x" * size, deltas=deltas)


@pytest.mark.parametrize("deltas", [1, 2000])
async def test_response_over_the_bound_fails_however_it_was_cut(lively: Stage, stream: bool, deltas: int) -> None:
    lively.model.play(long_text(MAX_RETAINED_BYTES + 1, deltas))
    stored = lively.stored_turns()

    if not stream:
        refused = await lively.ask(input="Hi")
        assert (refused.status, refused.body["error"]["code"]) == (502, "upstream_limit")
        assert lively.stored_turns() == stored
        return
    async with reading(lively) as client:
        events = await client.to_the_end()
    failed = events[-1]["response"]
    assert (failed["status"], failed["error"]["code"]) == ("failed", "upstream_limit")
    assert (await lively.get(f"/v1/responses/{failed['id']}")).json()["status"] == "failed"


@pytest.mark.parametrize("deltas", [1, 2000])
async def test_response_within_the_bound_completes_however_it_was_cut(lively: Stage, stream: bool, deltas: int) -> None:
    said = "x" * (MAX_RETAINED_BYTES - 4096)
    lively.model.play(text(said, deltas=deltas))

    answer = await lively.ask(input="Hi", stream=stream)

    assert (answer.body["status"], answer.text) == ("completed", said)


# Padding


@pytest.mark.parametrize("asked", [None, True, False])
async def test_deltas_are_padded_unless_the_client_says_no(stage: Stage, asked: bool | None) -> None:
    stage.model.play(function_calls(call("echo", {"text": "hi"})), text("One two three."))
    options = {} if asked is None else {"stream_options": {"include_obfuscation": asked}}

    async with reading(stage, tools=[stage.mcp_tool()], **options) as client:
        events = await client.to_the_end()

    deltas = [event for event in events if "delta" in event]
    assert {event["type"] for event in deltas} == {"response.mcp_call_arguments.delta", "response.output_text.delta"}
    assert {"obfuscation" in event for event in deltas} == {asked is not False}
    assert ["stream_options" in body for body in stage.model.asked] == [False, False]
