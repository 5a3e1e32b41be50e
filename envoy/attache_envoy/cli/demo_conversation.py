"""The demo's client: what it asks, what it shows of the answers, and what it expects of them.

It speaks plain HTTP, as any client would, and knows of the gateway nothing but its URL and Envoy's statistics. An arrow
to the right is what it sent to Envoy, one to the left what came back.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from types import TracebackType

import httpx
from rich.console import Console
from rich.markup import escape

from attache_core import json_codec
from attache_core.events.sse import SseDecoder
from attache_core.json_codec import Json
from attache_envoy.run.supervisor import RunningGateway

MODEL = "attache-demo"
RESPONSES_PATH = "/v1/responses"
TIMEOUT_S = 30.0
LONGEST_SHOWN = 72

UPSTREAM_REQUESTS = r"^cluster\.upstream[./_-].*\.upstream_rq_total$"
"""Requests that Envoy sent to inference servers: its counters of their clusters."""


class Conversation:
    """One run of the demo. `failures` says, in sentences without a full stop, what was not as it should be."""

    def __init__(self, running: RunningGateway, mcp_url: str, console: Console) -> None:
        self._running = running
        self._mcp_url = mcp_url
        self._console = console
        self._client = httpx.AsyncClient(base_url=running.url, timeout=TIMEOUT_S, trust_env=False)
        self._rounds_before = 0
        self.failures: list[str] = []

    async def __aenter__(self) -> Conversation:
        self._rounds_before = await self._upstream_requests()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._client.aclose()

    def introduce(self, model_url: str, placement: str) -> None:
        """Who is who."""
        self._show(
            "",
            f"  Envoy         {self._running.url:<27}   all that the client talks to",
            f"    filters     Attaché's, in Python, {placement}: they keep the state and run the tools",
            f"  model server  {model_url:<27}   remembers nothing; only Envoy talks to it",
            f"  MCP server    {self._mcp_url:<27}   has a tool; only the filters talk to it",
        )

    async def plain_turn(self) -> Json:
        """Turn 1: no stream, no tools; one inference round."""
        question = "Hello! Please remember that I live in Paris."
        self._title("1. A plain turn")
        self._show(f"  → POST {RESPONSES_PATH}  {question!r}")
        answer = await self._client.post(RESPONSES_PATH, json={"model": MODEL, "input": question})
        self._expect(answer.status_code == 200, f"the plain turn got HTTP status {answer.status_code}: {answer.text}")
        response: Json = answer.json()
        for item in response.get("output", []):
            self._show_item(item)
        await self._show_end(response, rounds=1)
        return response

    async def streamed_turn(self, previous: Json) -> Json:
        """Turn 2: continues turn 1 by its id, streamed, with an MCP tool that the gateway calls; two rounds."""
        question = "How is the weather in Paris?"
        self._title("2. A streamed turn that continues it, with a tool")
        self._show(
            f"  → POST {RESPONSES_PATH}  {question!r}",
            f"         previous_response_id {_short(previous['id'])}, and an MCP server as its tool",
        )
        events = [event async for event in self._shown_events(self._tool_request(question, previous))]
        self._expect(bool(events), "the streamed turn had no events")
        numbers = [event.get("sequence_number") for event in events]
        self._expect(numbers == list(range(len(events))), f"the sequence numbers are {numbers}")
        if not events:
            return {}
        self._show(f"  ← {len(events)} events in all, from {events[0]['type']} to {events[-1]['type']}")
        response: Json = events[-1].get("response", {})
        self._check_tool_turn(response, previous)
        await self._show_end(response, rounds=2)
        return response

    async def read_back(self, sent: Json) -> None:
        """What is stored is what was sent."""
        path = f"{RESPONSES_PATH}/{sent.get('id')}"
        self._title("3. The stored response, read back")
        self._show(f"  → GET {RESPONSES_PATH}/{_short(str(sent.get('id')))}")
        answer = await self._client.get(path)
        equal = answer.status_code == 200 and answer.json() == sent
        self._expect(equal, f"GET {path} answered {answer.status_code}: {answer.text}")
        if equal:
            self._show("  ← [green]equal to what was sent[/]")
        await self._check_rounds(0)

    def _tool_request(self, question: str, previous: Json) -> Json:
        tool = {
            "type": "mcp",
            "server_label": "weather",
            "server_url": self._mcp_url,
            "allowed_tools": ["get_weather"],
            "require_approval": "never",
        }
        return {
            "model": MODEL,
            "input": question,
            "previous_response_id": previous["id"],
            "stream": True,
            "tools": [tool],
        }

    async def _shown_events(self, body: Json) -> AsyncIterator[Json]:
        async with self._client.stream("POST", RESPONSES_PATH, json=body) as answer:
            if answer.status_code != 200:
                text = (await answer.aread()).decode(errors="replace")
                self._expect(False, f"the streamed turn got HTTP status {answer.status_code}: {text}")
                return
            decoder = SseDecoder()
            async for data in answer.aiter_bytes():
                for frame in decoder.feed(data):
                    event: Json = json_codec.decode(frame.data)
                    if event["type"] == "response.output_item.done":
                        self._show_item(event["item"])
                    yield event

    def _check_tool_turn(self, response: Json, previous: Json) -> None:
        self._expect(response.get("status") == "completed", f"the streamed turn ended {response.get('status')}")
        self._expect(response.get("previous_response_id") == previous["id"], "the second turn does not name the first")
        kinds = [item["type"] for item in response.get("output", [])]
        self._expect(kinds == ["mcp_list_tools", "mcp_call", "message"], f"the streamed turn's items are {kinds}")

    async def _show_end(self, response: Json, *, rounds: int) -> None:
        self._show(f"  [dim]{response.get('status')}, and stored as {_short(str(response.get('id')))}[/]")
        await self._check_rounds(rounds)

    async def _check_rounds(self, expected: int) -> None:
        """Envoy counts what it sends to the model server."""
        total = await self._upstream_requests()
        rounds, self._rounds_before = total - self._rounds_before, total
        self._expect(rounds == expected, f"Envoy sent {rounds} requests to the model server, and not {expected}")
        self._show(f"  [dim]requests to the model server, as Envoy counts them: {rounds}[/]")

    def _show_item(self, item: Json) -> None:
        self._show(f"  ← [yellow]{item['type']}[/]  {escape(_shown(item))}")

    def _title(self, title: str) -> None:
        self._show("", f"[bold]{title}[/]")

    def _show(self, *lines: str) -> None:
        for line in lines:
            self._console.print(line, soft_wrap=True)

    def _expect(self, holds: bool, otherwise: str) -> None:
        if not holds:
            self.failures.append(otherwise)
            self._show(f"  [bold red]✗ {escape(otherwise)}[/]")

    async def _upstream_requests(self) -> int:
        stats = await self._running.admin.stats(UPSTREAM_REQUESTS)
        return sum(stats.values())


def _short(response_id: str) -> str:
    return f"{response_id[:12]}…"


def _shown(item: Json) -> str:
    """The one line of an item that tells most."""
    match item["type"]:
        case "message":
            text = "".join(part.get("text", "") for part in item["content"])
        case "mcp_list_tools":
            text = f"{item['server_label']}: {', '.join(tool['name'] for tool in item['tools'])}"
        case "mcp_call":
            text = f"{item['name']}({item['arguments']}): {item.get('output') or item.get('error')}"
        case _:
            text = json_codec.encode(item).decode()
    return text if len(text) <= LONGEST_SHOWN else text[:LONGEST_SHOWN] + " …"
