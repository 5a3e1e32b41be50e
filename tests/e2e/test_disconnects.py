"""Clients that go away in the middle of a turn: what of it ends, what goes on, and what a later `GET` says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio

from attache_core.json_codec import Json
from attache_core.testing.model_script import (
    Reply,
    call,
    dies_after,
    function_calls,
    held,
    http_error,
    stalls_after,
    stream_error,
    text,
)
from attache_core.tools.task_scope import task_scope
from attache_envoy.run.settings import RunSettings
from e2e.stage import WAIT_S, Stage, check, open_stage
from e2e.test_conversation_turns import items_of, said
from e2e.test_conversations import create

WORDS = "alpha bravo charlie delta echo"
CUT = "alpha bravo"
"""What a model has said of them by its sixth event."""

CHAIN = """
chains:
  responses:
    - {filter: validate}
    - {filter: persist, on_disconnect: ON_DISCONNECT}
    - {filter: rehydrate}
    - {filter: tool_dispatch, loop: [{filter: upstream_round}]}
"""


def chain(on_disconnect: str) -> str:
    return CHAIN.replace("ON_DISCONNECT", on_disconnect)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def keeping_stage(placement: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    """A gateway that stores turns as cancelled."""
    folder = tmp_path_factory.mktemp(placement)
    async with open_stage(placement, folder, gateway_yaml=chain("store_cancelled")) as stage:
        yield stage


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def finishing_stage(placement: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    """A gateway that finishes turns without their clients."""
    async with open_stage(placement, tmp_path_factory.mktemp(placement), gateway_yaml=chain("finish")) as stage:
        yield stage


@pytest.fixture
def keeping(keeping_stage: Stage) -> Stage:
    keeping_stage.model.play()
    return keeping_stage


@pytest.fixture
def finishing(finishing_stage: Stage) -> Stage:
    finishing_stage.model.play()
    finishing_stage.mcp.release.clear()
    return finishing_stage


@pytest.fixture
def by_setting(stage: Stage, keeping: Stage, finishing: Stage) -> dict[str, Stage]:
    return {"cancel": stage, "store_cancelled": keeping, "finish": finishing}


@asynccontextmanager
async def client_that_leaves(stage: Stage, *, reads: str = "", **body: Any) -> AsyncIterator[None]:
    """A client that asks while the block runs, and hangs up after it; one that streams, when it has read `reads`."""
    seen = asyncio.Event()

    async def ask(client: httpx.AsyncClient) -> None:
        request = {"model": "m", **body}
        async with client.stream("POST", "/v1/responses", json=request) as response:
            read = b""
            async for data in response.aiter_bytes():
                read += data
                if reads.encode() in read:
                    seen.set()

    async with httpx.AsyncClient(base_url=stage.gateway.url, timeout=None) as client, task_scope() as tasks:
        tasks.start(ask(client))
        yield
        if body.get("stream") and reads:
            await asyncio.wait_for(seen.wait(), WAIT_S)


async def stored(stage: Stage, count: int) -> list[Json]:
    """All responses of a gateway, as soon as there are so many; the latest last."""
    async with asyncio.timeout(WAIT_S):
        while stage.stored_turns() < count:  # noqa: ASYNC110 - the database is another process's
            await asyncio.sleep(0.01)
    return [(await stage.get(f"/v1/responses/{name}")).json() for name in stage.stored_ids()]


async def until_called(stage: Stage, count: int) -> None:
    await stage.mcp.until(lambda server: len(server.calls) > count)


def is_beginning(output: list[Json], expected: list[str], *, whole: bool) -> bool:
    """Whether these are the items so far, as types and texts, the last of them cut off.

    All of them if `whole`: of a client that did not stream, nobody knows what had reached the gateway when it left.
    """
    shown = [item["content"][0]["text"] if item["type"] == "message" else item["type"] for item in output]
    if whole:
        return shown == expected and output[-1]["status"] == "incomplete"
    return all(item in (full, full[: len(item)]) for item, full in zip(shown, expected, strict=False))


def shape(response: Json) -> tuple[object, ...]:
    return response["status"], response["usage"], response["completed_at"], response["incomplete_details"]


CANCELLED = ("cancelled", None, None, None)


async def test_turn_is_stored_as_cancelled_with_what_was_said(keeping: Stage, stream: bool) -> None:
    server, before = keeping.model.server, keeping.stored_turns()
    assert server is not None
    left = server.cancelled
    keeping.model.play(function_calls(call("add", {"a": 1, "b": 2})), stalls_after(6, text(WORDS)))

    async with client_that_leaves(keeping, reads="bravo", input="Hi", stream=stream, tools=[keeping.mcp_tool()]):
        await keeping.model.wait_until_asked(2)

    await server.wait_for_disconnect(left + 1, timeout_s=1)
    *_, response = await stored(keeping, before + 1)
    assert shape(response) == CANCELLED
    assert is_beginning(response["output"], ["mcp_list_tools", "mcp_call", CUT], whole=stream)
    given = (await keeping.get(f"/v1/responses/{response['id']}/input_items")).json()["data"]
    assert [item["content"][0]["text"] for item in given] == ["Hi"]


async def test_turn_of_which_nothing_was_said_is_stored_as_cancelled_without_output(
    keeping: Stage, stream: bool
) -> None:
    before = keeping.stored_turns()
    keeping.model.play(stalls_after(0))

    async with client_that_leaves(keeping, input="Hi", stream=stream, metadata={"of": "mine"}):
        await keeping.model.wait_until_asked()

    *_, response = await stored(keeping, before + 1)
    assert (*shape(response), response["output"]) == (*CANCELLED, [])
    assert (response["metadata"], response["store"], response["model"]) == ({"of": "mine"}, True, "m")


async def test_tool_call_is_cancelled_and_shown_as_incomplete(keeping: Stage, stream: bool) -> None:
    calls, cancelled, before = len(keeping.mcp.calls), len(keeping.mcp.cancelled), keeping.stored_turns()
    keeping.model.play(function_calls(call("hang", {})))
    body: Json = {"input": "Hi", "stream": stream, "tools": [keeping.mcp_tool()]}

    async with client_that_leaves(keeping, reads="response.mcp_call.in_progress", **body):
        await until_called(keeping, calls)

    await keeping.mcp.until(lambda server: len(server.cancelled) > cancelled)
    *_, response = await stored(keeping, before + 1)
    assert shape(response) == CANCELLED
    assert is_beginning(response["output"], ["mcp_list_tools", "mcp_call"], whole=stream)


async def test_cancelled_response_cannot_be_continued_and_its_items_are_not_found(keeping: Stage) -> None:
    before = keeping.stored_turns()
    keeping.model.play(stalls_after(6, text(WORDS)))
    async with client_that_leaves(keeping, reads="bravo", input="Hi", stream=True):
        await keeping.model.wait_until_asked()
    *_, response = await stored(keeping, before + 1)

    for stream in (False, True):
        continued = await keeping.ask(input="Go on", previous_response_id=response["id"], stream=stream)
        reference = {"type": "item_reference", "id": response["output"][0]["id"]}
        referred = await keeping.ask(input=[reference], stream=stream)

        assert (continued.status, continued.body["error"]["code"]) == (400, "previous_response_not_continuable")
        assert "has status 'cancelled'" in continued.body["error"]["message"]
        assert referred.status == 404
    assert (await keeping.client.delete(f"/v1/responses/{response['id']}")).status_code == 200


@pytest.mark.parametrize("setting", ["cancel", "store_cancelled"])
async def test_conversation_is_free_again_and_has_nothing_of_the_turn(
    by_setting: dict[str, Stage], setting: str, stream: bool
) -> None:
    stage = by_setting[setting]
    name = await create(stage, "One")
    stage.model.play(stalls_after(5, text(WORDS)), text("Fine."))

    async with client_that_leaves(stage, input="Two", conversation=name, stream=stream):
        await stage.model.wait_until_asked()
    async with asyncio.timeout(WAIT_S):
        check(await stage.ask(input="Three", conversation=name, stream=stream))

    assert said(await items_of(stage, name)) == ["One", "Three", "Fine."]


@pytest.mark.parametrize("setting", ["store_cancelled", "finish"])
async def test_turn_that_is_not_to_be_stored_ends_and_leaves_nothing(
    by_setting: dict[str, Stage], setting: str, stream: bool
) -> None:
    stage = by_setting[setting]
    server, before = stage.model.server, stage.stored_turns()
    assert server is not None
    left = server.cancelled
    stage.model.play(stalls_after(0))

    async with client_that_leaves(stage, input="Hi", store=False, stream=stream):
        await stage.model.wait_until_asked()

    await server.wait_for_disconnect(left + 1, timeout_s=1)
    await stage.wait_until_idle()
    assert stage.stored_turns() == before


async def test_turn_goes_on_to_its_end_and_is_stored(finishing: Stage, stream: bool) -> None:
    before, go_on = finishing.stored_turns(), asyncio.Event()
    finishing.model.play(
        function_calls(call("add", {"a": 1, "b": 2})), held(go_on, text("It is three."), after_events=5), text("Sure.")
    )

    async with client_that_leaves(finishing, input="Hi", stream=stream, tools=[finishing.mcp_tool()]):
        await finishing.model.wait_until_asked(2)
    await finishing.wait_until_unattended()
    go_on.set()

    *_, response = await stored(finishing, before + 1)
    assert (response["status"], [item["type"] for item in response["output"]]) == (
        "completed",
        ["mcp_list_tools", "mcp_call", "message"],
    )
    assert response["usage"]["total_tokens"] > 0
    answer = check(await finishing.ask(input="Sure?", previous_response_id=response["id"], stream=stream))
    assert answer.text == "Sure."


@pytest.mark.parametrize("waits_for", ["its first word", "a tool"])
async def test_turn_goes_on_from_wherever_its_client_left_it(finishing: Stage, waits_for: str, stream: bool) -> None:
    before, calls, go_on = finishing.stored_turns(), len(finishing.mcp.calls), asyncio.Event()
    by_tool = waits_for == "a tool"
    first = function_calls(call("slow", {})) if by_tool else held(go_on, text("Late."))
    finishing.model.play(first, *([text("Late.")] if by_tool else []))
    name = await create(finishing, "One")

    body: Json = {"conversation": name, "tools": [finishing.mcp_tool()]}
    async with client_that_leaves(finishing, input="Two", stream=stream, **body):
        await (until_called(finishing, calls) if by_tool else finishing.model.wait_until_asked())
    await finishing.wait_until_unattended()
    finishing.mcp.release.set()
    go_on.set()

    *_, response = await stored(finishing, before + 1)
    assert response["status"] == "completed"
    items = await items_of(finishing, name)
    assert (items[0]["content"][0]["text"], items[-1]["content"][0]["text"]) == ("One", "Late.")
    assert [item["id"] for item in items[2:]] == [item["id"] for item in response["output"]]


async def test_turn_that_fails_without_its_client_is_stored_as_failed(finishing: Stage) -> None:
    before, go_on = finishing.stored_turns(), asyncio.Event()
    finishing.model.play(held(go_on, stream_error("broken", reply=text("Half")), after_events=4))

    async with client_that_leaves(finishing, input="Hi", stream=True):
        await finishing.model.wait_until_asked()
    await finishing.wait_until_unattended()
    go_on.set()

    *_, response = await stored(finishing, before + 1)
    assert (response["status"], response["error"]["message"]) == ("failed", "broken")


@pytest.mark.parametrize("setting", ["store_cancelled", "finish"])
@pytest.mark.parametrize(
    ("reply", "status", "code"),
    [
        (lambda: http_error(429), 429, "rate_limit_exceeded"),
        (lambda: stream_error("broken", reply=text("Half")), 502, "server_error"),
        (lambda: dies_after(4, text("one two three four")), 502, "upstream_broke_off"),
        (lambda: dies_after(0), 502, None),
    ],
    ids=["refused", "failed", "died", "died at once"],
)
async def test_client_that_waits_for_json_gets_an_http_error_all_the_same(
    by_setting: dict[str, Stage], setting: str, reply: Callable[[], Reply], status: int, code: str | None
) -> None:
    stage = by_setting[setting]
    before = stage.stored_turns()
    stage.model.play(reply())

    answer = await stage.ask(input="Hi")

    assert answer.status in (status, 503) if code is None else answer.status == status
    assert set(answer.body) == {"error"}
    assert stage.stored_turns() == before


@pytest.mark.parametrize("setting", ["store_cancelled", "finish"])
async def test_client_that_stays_gets_the_answer_that_is_stored(
    by_setting: dict[str, Stage], setting: str, stream: bool
) -> None:
    stage = by_setting[setting]
    stage.model.play(function_calls(call("add", {"a": 1, "b": 2})), text("Three."))

    answer = check(await stage.ask(input="Hi", stream=stream, tools=[stage.mcp_tool()]))

    assert answer.item_types == ["mcp_list_tools", "mcp_call", "message"]
    assert (await stage.get(f"/v1/responses/{answer.body['id']}")).json() == answer.body
    assert [asked["stream"] for asked in stage.model.asked] == [True, True]


async def test_turn_over_the_time_limit_is_stored_as_cancelled(placement: str, tmp_path: Path) -> None:
    bounded = chain("finish, finish_timeout_s: 0.2")
    async with open_stage(placement, tmp_path, gateway_yaml=bounded) as stage:
        for count, stream in enumerate([False, True], 1):
            stage.model.play(stalls_after(6, text(WORDS)))

            async with client_that_leaves(stage, reads="bravo", input="Hi", stream=stream):
                await stage.model.wait_until_asked()

            assert stage.model.server is not None
            await stage.model.server.wait_for_disconnect(count)
            *_, response = await stored(stage, count)
            assert (shape(response), response["output"][0]["content"][0]["text"]) == (CANCELLED, CUT)


async def test_turn_for_which_there_is_no_room_is_stored_as_cancelled(placement: str, tmp_path: Path) -> None:
    async with open_stage(placement, tmp_path, gateway_yaml=chain("finish, max_unattended_turns: 1")) as stage:
        go_on = asyncio.Event()
        stage.model.set(lambda _: held(go_on, text("Done.")))
        async with client_that_leaves(stage, input="Hi"):
            await stage.model.wait_until_asked()
        await stage.wait_until_unattended()
        for count, stream in enumerate([False, True], 1):
            async with client_that_leaves(stage, input="Hi", stream=stream):
                await stage.model.wait_until_asked(1 + count)
            assert {response["status"] for response in await stored(stage, count)} == {"cancelled"}

        go_on.set()
        assert [response["status"] for response in await stored(stage, 3)] == ["cancelled", "cancelled", "completed"]


async def test_gateway_that_is_stopped_waits_for_turns_without_clients(placement: str, tmp_path: Path) -> None:
    async with open_stage(placement, tmp_path, gateway_yaml=chain("finish"), run=RunSettings(grace_s=WAIT_S)) as stage:
        stage.model.set(
            lambda asked: text("Done.") if "output" in str(asked.body) else function_calls(call("slow", {}))
        )
        for stream in (False, True):
            calls = len(stage.mcp.calls)
            async with client_that_leaves(stage, input="Hi", stream=stream, tools=[stage.mcp_tool()]):
                await until_called(stage, calls)
        await stage.wait_until_unattended()
        asyncio.get_running_loop().call_later(0.3, stage.mcp.release.set)

    assert stage.stored_statuses() == ["completed", "completed"]
