"""One soak: clients talk, processes are killed, and then the store is held against what the clients were told."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import httpx

from attache_core.json_codec import Json
from attache_core.testing.model_script import Reply, paced, text
from attache_core.testing.model_server import ModelServer, ReceivedRequest, running_model_server
from attache_core.types.turn import input_items
from postgresql_server import PostgresqlServer
from soak.clients import Clients
from soak.house import POLL_S, READY_S, House, open_house
from soak.plan import Plan
from soak.told import Told, answer_to, digest, text_of
from soak.verdict import Found, faults

DELTA_S = 0.002
UNAVAILABLE = httpx.codes.SERVICE_UNAVAILABLE


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a soak.

    Attributes:
        told: how often clients were told what.
        stored_unknown: of the turns whose end nobody was told, how many are in the store.
        killed: what was killed how often.
        faults: see `verdict.faults`.
    """

    told: Counter[str]
    stored_unknown: int
    killed: Counter[str]
    faults: list[str]


class Model:
    """Answers by what was said last, and remembers what it had heard before that."""

    def __init__(self) -> None:
        self.heard: dict[str, str] = {}
        self.server: ModelServer | None = None

    def answer(self, request: ReceivedRequest) -> Reply:
        assert self.server is not None
        self.server.requests.clear()
        *before, words = [text_of(item) for item in input_items(request.body)]
        self.heard[words] = digest(before)
        return paced(DELTA_S, text(answer_to(words)))


async def run_soak(plan: Plan, folder: Path, postgresql: PostgresqlServer | None = None) -> Result:
    """Run a whole soak, on a new SQLite file in `folder` or on a new database of `postgresql`."""
    plan = plan if postgresql is not None else plan.on_sqlite()
    model = Model()
    async with (
        running_model_server(model.answer) as model.server,
        open_house(plan, model.server.url, folder, postgresql) as house,
    ):
        names = [await _new_conversation(house) for _ in range(plan.conversations)]
        clients = Clients(plan, house.url, names)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(clients.talk())
            tasks.create_task(_kill(plan, house))
        await house.wait_until_idle()
        found = await _found(house, names, clients.told, model.heard)
    said = {text_of(item) for items in found.conversations.values() for item in items[::2]}
    unknown = sum(turn.outcome == "unknown" and turn.words in said for turn in clients.told)
    told = Counter(turn.told for turn in clients.told)
    return Result(told, unknown, house.killed, faults(clients.told, found))


async def _kill(plan: Plan, house: House) -> None:
    for victim in plan.kills:
        await asyncio.sleep(plan.duration_s / (len(plan.kills) + 1))
        await house.kill(victim)


async def _new_conversation(house: House) -> str:
    async with httpx.AsyncClient(base_url=house.url) as client:
        name: str = (await client.post("/v1/conversations", json={})).raise_for_status().json()["id"]
        return name


async def _found(house: House, names: list[str], told: list[Told], heard: dict[str, str]) -> Found:
    ids = [turn.response["id"] for turn in told if turn.response is not None]
    async with httpx.AsyncClient(base_url=house.url, timeout=60.0) as client:
        conversations = {name: await _items(client, name) for name in names}
        return Found(conversations, {name: await _response(client, name) for name in ids}, heard)


async def _response(client: httpx.AsyncClient, name: str) -> Json | None:
    answer = await _answer(client, f"/v1/responses/{name}")
    found: Json | None = None if answer.status_code == httpx.codes.NOT_FOUND else answer.raise_for_status().json()
    return found


async def _answer(client: httpx.AsyncClient, path: str, query: Mapping[str, str] | None = None) -> httpx.Response:
    """What is answered once the gateway is there again: the last kill may have been a moment ago."""
    async with asyncio.timeout(READY_S):
        while (answer := await client.get(path, params=query)).status_code == UNAVAILABLE:  # noqa: ASYNC110 - only asked
            await asyncio.sleep(POLL_S)
    return answer


async def _items(client: httpx.AsyncClient, name: str) -> list[Json]:
    items: list[Json] = []
    more = True
    while more:
        after = {"after": items[-1]["id"]} if items else {}
        query = {"order": "asc", "limit": "100", **after}
        page = (await _answer(client, f"/v1/conversations/{name}/items", query)).raise_for_status().json()
        items += page["data"]
        more = page["has_more"]
    return items
