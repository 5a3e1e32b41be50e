"""A whole gateway on a stage: real Envoy, real workers, a scripted model server, an MCP server made with the SDK."""

from __future__ import annotations

import asyncio
import os
import re
import sqlite3
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from attache_core.events.event import TERMINAL_TYPES, Event
from attache_core.events.sse import SseDecoder
from attache_core.json_codec import Json, decode_exactly, encode
from attache_core.testing.mcp_server import RunningMcpServer, running_mcp_server
from attache_core.testing.model_script import Reply
from attache_core.testing.model_server import ModelServer, ReceivedRequest, running_model_server
from attache_envoy.gateway import Gateway, parse_gateway
from attache_envoy.run.settings import RunSettings
from attache_envoy.run.supervisor import RunningGateway, running_gateway
from conformance.witness import WitnessTransport
from core.events.canonical_stream import check_stream
from postgresql_server import PostgresqlServer, database_of

WAIT_S = 5.0
TRANSPORT = os.environ.get("ATTACHE_TEST_TRANSPORT", "lean")
"""The transport between Envoy and the workers of every stage that asks for no other."""

Script = Sequence[Reply] | Callable[[ReceivedRequest], Reply]


@dataclass
class Playbill:
    """What the model says next, and what it was asked since."""

    server: ModelServer | None = None
    script: Script = ()
    _played: int = 0
    _before: int = 0

    def play(self, *script: Reply) -> None:
        """Answer the next requests with these replies, in order; one too many is answered 500."""
        self.set(script)

    def set(self, script: Script) -> None:
        assert self.server is not None
        self.script, self._played = script, 0
        self._before = self.server.request_count
        self.server.requests.clear()

    def answer(self, request: ReceivedRequest) -> Reply:
        if callable(self.script):
            return self.script(request)
        self._played += 1
        return self.script[self._played - 1]

    @property
    def asked(self) -> list[Json]:
        """The bodies that reached the model server since the script was set."""
        assert self.server is not None
        return [request.body for request in self.server.requests]

    @property
    def requests(self) -> list[ReceivedRequest]:
        assert self.server is not None
        return self.server.requests

    async def wait_until_asked(self, count: int = 1) -> None:
        assert self.server is not None
        await self.server.wait_for_requests(self._before + count)


@dataclass(frozen=True)
class Answered:
    """What a client got."""

    status: int
    headers: httpx.Headers
    events: list[Json]
    """The decoded events of a stream; none for a JSON answer."""
    body: Json
    """The JSON body, or the `response` of a stream's terminal event."""

    @property
    def decoded(self) -> list[Event]:
        return [Event(event["type"], event) for event in self.events]

    @property
    def types(self) -> list[str]:
        return [event["type"] for event in self.events]

    @property
    def text(self) -> str:
        return "".join(
            part["text"] for item in self.body["output"] if item["type"] == "message" for part in item["content"]
        )

    @property
    def item_types(self) -> list[str]:
        return [item["type"] for item in self.body["output"]]


@dataclass
class Stage:
    """A running gateway and what stands around it.

    Attributes:
        storage: the file of its SQLite store.
        postgresql: the server that has its store instead.
    """

    placement: str
    gateway: RunningGateway
    model: Playbill
    mcp: RunningMcpServer
    client: httpx.AsyncClient
    storage: Path
    settings: Gateway = field(repr=False)
    postgresql: PostgresqlServer | None = None

    async def ask(self, *, stream: bool = False, **body: Any) -> Answered:
        """One turn; `model` is filled in."""
        request = {"model": "attache-demo", **body, **({"stream": True} if stream else {})}
        return await self.post(request)

    async def post(self, body: Json | bytes, headers: dict[str, str] | None = None) -> Answered:
        content = body if isinstance(body, bytes) else encode(body)
        given = {"content-type": "application/json", **(headers or {})}
        return answered(await self.client.post("/v1/responses", headers=given, content=content))

    async def get(self, path: str) -> httpx.Response:
        return await self.client.get(path)

    def mcp_tool(self, label: str = "demo", **fields: Any) -> Json:
        return {
            "type": "mcp",
            "server_label": label,
            "server_url": self.mcp.url,
            "require_approval": "never",
            **fields,
        }

    async def stat(self, name: str) -> int:
        """The value of one of Envoy's counters or gauges."""
        (value,) = (await self.gateway.admin.stats(f"^{re.escape(name)}$")).values()
        return value

    def stored_turns(self) -> int:
        """How many turns are in the store."""
        if self.postgresql is not None:
            database_name = database_of(self.settings.storage.url.reveal())
            return int(self.postgresql.sql("select count(*) from responses", database_name))
        with sqlite3.connect(self.storage) as database:
            (count,) = database.execute("select count(*) from responses").fetchone()
            return int(count)

    def stored_ids(self) -> list[str]:
        """The ids of the turns that are in the store, the latest last."""
        with sqlite3.connect(self.storage) as database:
            return [name for (name,) in database.execute("select id from responses order by rowid")]

    def stored_statuses(self) -> list[str]:
        """Their statuses, in the same order."""
        with sqlite3.connect(self.storage) as database:
            return [status for (status,) in database.execute("select status from responses order by rowid")]

    async def wait_until_unattended(self, timeout_s: float = WAIT_S) -> None:
        """Return once a worker has a turn that goes on without its client."""
        async with asyncio.timeout(timeout_s):
            while not list(self.gateway.run_dir.glob("*.unattended")):  # noqa: ASYNC110 - another process's file
                await asyncio.sleep(0.01)

    async def wait_until_idle(self, timeout_s: float = WAIT_S) -> None:
        """Return once no filter runs for anybody."""
        async with asyncio.timeout(timeout_s):
            while await self.stat("cluster.workers.upstream_rq_active"):  # noqa: ASYNC110 - Envoy is only ever asked
                await asyncio.sleep(0.01)


def answered(response: httpx.Response) -> Answered:
    if not response.headers["content-type"].startswith("text/event-stream"):
        return Answered(response.status_code, response.headers, [], response.json())
    events = decode_events(response.content)
    terminal = [event["response"] for event in events if event["type"] in TERMINAL_TYPES]
    assert len(terminal) == 1, [event["type"] for event in events]
    return Answered(response.status_code, response.headers, events, terminal[0])


def decode_events(data: bytes) -> list[Json]:
    decoder = SseDecoder()
    frames = decoder.feed(data)
    decoder.close()
    events = [decode_exactly(frame.data) for frame in frames]
    assert [frame.event for frame in frames] == [event["type"] for event in events]
    return events


def check(answer: Answered) -> Answered:
    """The same answer, which is a success; a stream of it is valid."""
    assert answer.status == 200, answer.body
    if answer.events:
        check_stream(answer.decoded)
    return answer


@asynccontextmanager
async def open_stage(
    placement: str,
    folder: Path,
    *,
    gateway_yaml: str = "",
    upstream_yaml: str = "",
    other_upstreams_yaml: str = "",
    workers: int = 1,
    transport: str = TRANSPORT,
    run: RunSettings | None = None,
    only_the_api: bool = True,
    postgresql: PostgresqlServer | None = None,
    storage_url: str | None = None,
) -> AsyncIterator[Stage]:
    """Start everything; stop everything.

    `upstream_yaml` holds settings of the model server, such as `dialect: vllm`, and `other_upstreams_yaml` further
    upstreams, such as `other: {url: …}`, in which `MODEL` stands for the model server's URL. The store is a new file,
    or the database `storage_url` of `postgresql`. `only_the_api` is false where clients get what the API's schemas do
    not know, such as items of another package's tools.
    """
    storage = folder / "attache.db"
    url = storage_url or f"sqlite:///{storage}"
    playbill = Playbill()
    async with AsyncExitStack() as stack:
        playbill.server = await stack.enter_async_context(running_model_server(playbill.answer))
        mcp = await stack.enter_async_context(running_mcp_server())
        model = playbill.server.url
        others = other_upstreams_yaml.replace("MODEL", model)
        text = (
            f"listen: 127.0.0.1:0\nplacement: {placement}\nworkers: {workers}\ntransport: {transport}\nstorage: {url}\n"
            f"upstreams: {{default: {{url: '{model}', {upstream_yaml}}}, {others}}}\n"
            f"{gateway_yaml}"
        )
        settings = parse_gateway(text, "stage.yaml")
        gateway = await stack.enter_async_context(running_gateway(settings, run))
        witness = WitnessTransport() if only_the_api else None
        client = await stack.enter_async_context(
            httpx.AsyncClient(transport=witness, base_url=gateway.url, timeout=4 * WAIT_S)
        )
        yield Stage(placement, gateway, playbill, mcp, client, storage, settings, postgresql)


def python_path_with(folder: Path) -> str:
    """PYTHONPATH with one more folder in front, for worker processes."""
    return os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])


PYTHON = sys.executable
