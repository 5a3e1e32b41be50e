"""The demo's client: what it asks, what it shows of the answers, and what it expects of them.

It speaks plain HTTP, as any client would, and knows of the gateway nothing but its URL and Envoy's statistics.
"""

from __future__ import annotations

from collections import Counter
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
LONGEST_SHOWN = 60

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
        self._console.print(
            f"  Envoy         {self._running.url}   all that the client talks to\n"
            f"  model server  {model_url}   stateless: it remembers nothing\n"
            f"  MCP server    {self._mcp_url}   tools, run by the gateway\n"
            f"  In Envoy's filter chain: Attaché's filters, in Python, {placement}. They keep the state."
        )

    async def plain_turn(self) -> Json:
        """Turn 1: no stream, no tools; one inference round."""
        self._title("1", "A plain turn", "one inference round; the turn is stored")
        answer = await self._client.post(
            RESPONSES_PATH, json={"model": MODEL, "input": "Hello! Please remember that I live in Paris."}
        )
        self._expect(answer.status_code == 200, f"the plain turn got HTTP status {answer.status_code}: {answer.text}")
        response: Json = answer.json()
        self._show_response(response)
        return response

    async def streamed_turn(self, previous: Json) -> Json:
        """Turn 2: continues turn 1 by its id, streamed, with an MCP tool that the gateway calls; two rounds."""
        self._title("2", "A streamed turn that continues it", "two rounds, a tool call between")
        body = {
            "model": MODEL,
            "input": "How is the weather in Paris?",
            "previous_response_id": previous["id"],
            "stream": True,
            "tools": [
                {"type": "mcp", "server_label": "weather", "server_url": self._mcp_url, "require_approval": "never"}
            ],
        }
        events = [event async for event in self._shown_events(body)]
        self._expect(bool(events), "the streamed turn had no events")
        numbers = [event.get("sequence_number") for event in events]
        self._expect(numbers == list(range(len(events))), f"the sequence numbers are {numbers}")
        response: Json = events[-1].get("response", {})
        self._check_tool_turn(response, previous)
        self._show_response(response)
        return response

    async def read_back(self, sent: Json) -> None:
        """What is stored is what was sent."""
        self._title("3", "The stored response, read back", "the model server is not asked")
        answer = await self._client.get(f"{RESPONSES_PATH}/{sent.get('id')}")
        equal = answer.status_code == 200 and answer.json() == sent
        self._expect(equal, f"GET {RESPONSES_PATH}/{sent.get('id')} answered {answer.status_code}: {answer.text}")
        if equal:
            self._console.print(f"  GET {RESPONSES_PATH}/{_short(sent['id'])}: [green]equal to what was sent[/]")

    async def count_rounds(self) -> None:
        """Envoy counted the rounds itself."""
        self._title("4", "What Envoy counted", "requests to the model server")
        rounds = await self._upstream_requests() - self._rounds_before
        self._expect(rounds == 3, f"Envoy sent {rounds} requests to the model server, and not 1 + 2")
        self._console.print(f"  {rounds} = 1 for the first turn + 2 for the second")

    async def _shown_events(self, body: Json) -> AsyncIterator[Json]:
        deltas: Counter[str] = Counter()
        async with self._client.stream("POST", RESPONSES_PATH, json=body) as answer:
            if answer.status_code != 200:
                text = (await answer.aread()).decode(errors="replace")
                self._expect(False, f"the streamed turn got HTTP status {answer.status_code}: {text}")
                return
            decoder = SseDecoder()
            async for data in answer.aiter_bytes():
                for frame in decoder.feed(data):
                    event: Json = json_codec.decode(frame.data)
                    self._show_event(event, deltas)
                    yield event

    def _show_event(self, event: Json, deltas: Counter[str]) -> None:
        kind = event["type"]
        if kind.endswith(".delta"):
            deltas[kind] += 1
            return
        for name, count in deltas.items():
            self._console.print(f"  [dim]· {count} of {name}[/]")
        deltas.clear()
        item = event.get("item")
        detail = f"  {item['type']}" if isinstance(item, dict) else ""
        self._console.print(f"  [cyan]· {kind}[/]{escape(detail)}")

    def _check_tool_turn(self, response: Json, previous: Json) -> None:
        self._expect(response.get("status") == "completed", f"the streamed turn ended {response.get('status')}")
        self._expect(response.get("previous_response_id") == previous["id"], "the second turn does not name the first")
        kinds = [item["type"] for item in response.get("output", [])]
        self._expect(kinds == ["mcp_list_tools", "mcp_call", "message"], f"the streamed turn's items are {kinds}")

    def _show_response(self, response: Json) -> None:
        self._console.print(f"  response [bold]{_short(response.get('id', ''))}[/], {response.get('status')}")
        for item in response.get("output", []):
            self._console.print(f"  [yellow]{item['type']}[/] {escape(_shown(item))}")

    def _title(self, number: str, title: str, subtitle: str) -> None:
        self._console.print(f"\n[bold]{number}. {title}[/]  [dim]{subtitle}[/]")

    def _expect(self, holds: bool, otherwise: str) -> None:
        if not holds:
            self.failures.append(otherwise)
            self._console.print(f"  [bold red]✗ {escape(otherwise)}[/]")

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
            text = f"{item['name']}({item['arguments']}) → {item.get('output') or item.get('error')}"
        case _:
            text = json_codec.encode(item).decode()
    return text if len(text) <= LONGEST_SHOWN else text[:LONGEST_SHOWN] + " …"
