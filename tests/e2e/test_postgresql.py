"""Gateways on a PostgreSQL that is shared, down, and killed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import httpx
import pytest

from attache_core.json_codec import Json
from attache_core.testing.model_script import held, text
from e2e.stage import WAIT_S, Stage, check, open_stage
from e2e.test_conversation_turns import items_of, said
from e2e.test_conversations import create
from postgresql_server import PostgresqlServer, database_of, running_postgresql

KILLS = 3
CLIENTS = 6


@pytest.fixture(scope="module")
def mortal() -> Iterator[PostgresqlServer]:
    """A server of this module's own, to be killed; each test finds and leaves it running."""
    with running_postgresql() as server:
        yield server


@asynccontextmanager
async def stages_on(
    server: PostgresqlServer, placement: str, folder: Path, *, number: int = 1, workers: int = 1
) -> AsyncIterator[list[Stage]]:
    """Gateways that share a new database."""
    url = server.new_database()
    async with AsyncExitStack() as stack:
        yield [
            await stack.enter_async_context(
                open_stage(placement, folder, postgresql=server, storage_url=url, workers=workers)
            )
            for _ in range(number)
        ]


async def test_conversation_goes_on_at_any_gateway_of_a_database(
    postgresql: PostgresqlServer, placement: str, tmp_path: Path
) -> None:
    async with stages_on(postgresql, placement, tmp_path, number=2) as stages:
        previous: Json = {}
        for number in range(4):
            stage, other = stages[number % 2], stages[1 - number % 2]
            stage.model.play(text(f"Answer {number}."))
            answer = check(await stage.ask(input=f"Question {number}?", stream=number < 2, **previous))
            previous = {"previous_response_id": answer.body["id"]}
            read = await other.get(f"/v1/responses/{answer.body['id']}")
            assert (read.status_code, read.json()) == (200, answer.body)
        heard = [item["content"][0]["text"] for item in stage.model.asked[0]["input"]]
    said = [words for number in range(3) for words in (f"Question {number}?", f"Answer {number}.")]
    assert heard == [*said, "Question 3?"]


async def test_conversation_object_is_the_same_at_any_gateway_of_a_database(
    postgresql: PostgresqlServer, placement: str, tmp_path: Path
) -> None:
    async with stages_on(postgresql, placement, tmp_path, number=2) as stages:
        name = await create(stages[0], "I am Ada.")
        for number in range(4):
            stage, other = stages[number % 2], stages[1 - number % 2]
            stage.model.play(text(f"Answer {number}."))
            check(await stage.ask(input=f"Question {number}?", conversation=name, stream=number < 2))
            seen = await items_of(stage, name)
            assert await items_of(other, name) == seen
            assert (await other.get(f"/v1/conversations/{name}/items/{seen[-1]['id']}")).json() == seen[-1]
        heard = said(stage.model.asked[0]["input"])

        go_on = asyncio.Event()
        stages[0].model.play(held(go_on, text("First.")))
        stages[1].model.play(text("Second."))
        async with asyncio.timeout(4 * WAIT_S), asyncio.TaskGroup() as tasks:
            first = tasks.create_task(stages[0].ask(input="1", conversation=name))
            await stages[0].model.wait_until_asked()
            second = tasks.create_task(stages[1].ask(input="2", conversation=name))
            await stages[1].get(f"/v1/conversations/{name}")
            assert stages[1].model.asked == []
            go_on.set()
        assert (check(first.result()).text, check(second.result()).text) == ("First.", "Second.")
        last = said(await items_of(stages[0], name))

    turns = [words for number in range(4) for words in (f"Question {number}?", f"Answer {number}.")]
    assert heard == ["I am Ada.", *turns[:-1]]
    assert last == ["I am Ada.", *turns, "1", "First.", "2", "Second."]
    assert said(stages[1].model.asked[0]["input"]) == last[:-1]


async def test_store_that_is_down_is_never_not_found_and_needs_no_restart_of_the_gateway(
    mortal: PostgresqlServer, placement: str, tmp_path: Path
) -> None:
    async with stages_on(mortal, placement, tmp_path) as (stage,):
        stage.model.set(lambda _: text("Hello."))
        known = check(await stage.ask(input="Hi")).body["id"]
        await asyncio.to_thread(mortal.kill)

        for stream in (False, True):
            refused = await stage.ask(input="Go on", previous_response_id=known, stream=stream)
            assert_store_unavailable(refused.status, refused.headers, refused.body)
        assert len(stage.model.asked) == 1
        for path in (f"/v1/responses/{known}", "/ready"):
            answer = await stage.get(path)
            assert_store_unavailable(answer.status_code, answer.headers, answer.json())
        lost = await stage.ask(input="Hi")
        assert_store_unavailable(lost.status, lost.headers, lost.body)
        lost = await stage.ask(input="Hi", stream=True)
        assert (lost.events[-1]["type"], lost.body["error"]["code"]) == ("response.failed", "store_unavailable")

        await asyncio.to_thread(mortal.start)
        assert check(await stage.ask(input="Go on", previous_response_id=known)).text == "Hello."
        assert (await stage.get("/ready")).status_code == 200


def assert_store_unavailable(status: int, headers: httpx.Headers, body: Json) -> None:
    message = "The store is out of reach; the same request may succeed later."
    error = {"message": message, "type": "server_error", "param": None, "code": "store_unavailable"}
    assert (status, headers["retry-after"], body) == (503, "1", {"error": error})


@dataclass
class Conversations:
    """Clients of a gateway whose store is killed, and what they were told."""

    stage: Stage
    stream: bool
    completed: list[Json] = field(default_factory=list)
    under_way: asyncio.Event = field(default_factory=asyncio.Event)
    killed: asyncio.Event = field(default_factory=asyncio.Event)

    async def go_on(self) -> None:
        """Turn after turn of one conversation, until one fails, or the store was killed without one that did."""
        previous: Json = {}
        for number in count(1):
            answer = await self.stage.ask(input="Go on", stream=self.stream, **previous)
            if answer.body.get("status") != "completed":
                assert answer.body["error"]["code"] == "store_unavailable"
                return
            self.completed.append(answer.body)
            previous = {"previous_response_id": answer.body["id"]}
            if number == KILLS:
                self.under_way.set()
            if self.killed.is_set():
                return


async def test_server_killed_in_the_middle_of_turns_has_every_turn_that_a_client_was_told_of(
    mortal: PostgresqlServer, placement: str, tmp_path: Path
) -> None:
    async with stages_on(mortal, placement, tmp_path, workers=2) as (stage,):
        stage.model.set(lambda _: text("Yes."))
        completed: list[Json] = []
        for kill in range(KILLS):
            clients = Conversations(stage, stream=kill % 2 == 1)
            async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
                for _client in range(CLIENTS):
                    tasks.create_task(clients.go_on())
                await clients.under_way.wait()
                await asyncio.to_thread(mortal.kill)
                clients.killed.set()
            await asyncio.to_thread(mortal.start)
            completed += clients.completed

        for response in completed:
            assert (await stage.get(f"/v1/responses/{response['id']}")).json() == response
        ids = mortal.sql("SELECT id FROM responses", database_of(stage.settings.storage.url.reveal())).split()
        assert len(ids) == len(set(ids))
        assert {response["id"] for response in completed} <= set(ids)
        assert len(ids) <= len(completed) + KILLS * CLIENTS  # an end of which nobody heard
        last = await stage.ask(input="Still there?", previous_response_id=completed[-1]["id"])
        assert check(last).text == "Yes."
