"""The tool loop: what we do next.

One turn is a loop of rounds. A round asks the model (`below`); gateway-executed calls that it made are run and their
results are told to the model in the next round; client-executed calls end the turn and are returned to the client. All
rounds are one response: one `response.created`, one terminal event, one continuous numbering.

The accumulator knows what the model said and the sequencer what the client sees; here it is decided what of the one
becomes part of the other. Invariant: what the model is told in the next round, or in the next turn, is made of the
input and the response's `output` alone.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace

from attache_core.errors import AttacheError
from attache_core.events.accumulator import Accumulator
from attache_core.events.dialects import CanonicalReader
from attache_core.events.event import Event
from attache_core.events.model_events import Finished, ModelEvent, Started
from attache_core.events.sequencer import Sequencer
from attache_core.json_codec import Json
from attache_core.tools.mcp.servers import McpServers
from attache_core.tools.registry import (
    McpListing,
    ToolRegistry,
    build_registry,
    model_input,
    model_tool_choice,
    needs_discovery,
)
from attache_core.tools.scheduler import CallLimits, GatewayCall, scheduled
from attache_core.turn.below import Below
from attache_core.turn.mcp_items import call_begun, call_ended, listing_events
from attache_core.turn.round_view import HeldCall, RoundView
from attache_core.types.ids import item_id, new_id
from attache_core.types.response import new_response
from attache_core.types.turn import TurnRequest, input_items
from attache_core.types.usage import add_usage

OUT_OF_ROUNDS = "max_messages"
"""`incomplete_details.reason` of a response whose model still called tools in its last allowed round: the one of the
API's reasons that means a bound on what the model may say, other than on its tokens."""


@dataclass(frozen=True, slots=True)
class LoopLimits:
    """Bounds of a turn.

    Attributes:
        max_rounds: inference rounds of one turn; after the last one the response is `incomplete`.
        max_round_bytes: what is kept of one round's answer.
        calls: bounds of the gateway-executed calls of one round.
    """

    max_rounds: int = 10
    max_round_bytes: int = 16 * 1024 * 1024
    calls: CallLimits = field(default_factory=CallLimits)


async def run_tool_loop(turn: TurnRequest, below: Below, mcp: McpServers, limits: LoopLimits) -> AsyncIterator[Event]:
    """Answer one turn.

    Yields the canonical events of the whole turn; only the terminal one when the turn is not streamed. A streaming
    client gets `response.created` before any tool server is contacted.

    Raises:
        ClientError: the tools cannot be used as declared.
        AttacheError: what `below` raises, as long as nothing was yielded.
    """
    turn = turn.with_facts(response_id=turn.facts.response_id or new_id("resp"))
    tools: Sequence[Json] = turn.body.get("tools") or ()
    client = _ClientStream(turn)
    try:
        if turn.stream and needs_discovery(tools, mcp):
            for event in client.start():
                yield event
        loop = _ToolLoop(turn, await build_registry(tools, mcp), client, limits)
        async for event in loop.run(below):
            yield event
    except AttacheError as error:
        if not client.released:
            raise
        for event in client.fail(error):
            yield event


class _ClientStream:
    """The sequencer of a turn, and what of it is released to this client."""

    def __init__(self, turn: TurnRequest) -> None:
        response_id = turn.facts.response_id or new_id("resp")
        response = new_response(turn.body, response_id=response_id, created_at=int(time.time()))
        self._sequencer = Sequencer(response, make_id=item_id)
        self._streams = turn.stream
        self.released = False

    @property
    def output(self) -> Sequence[Json]:
        """The finished items of the response, over all rounds."""
        output: Sequence[Json] = self._sequencer.response["output"]
        return output

    def start(self) -> list[Event]:
        return self._release(self._sequencer.start())

    def show(self, said: Iterable[ModelEvent]) -> list[Event]:
        return self._release([event for one in said for event in self._sequencer.emit(one)])

    def finish(self, finished: Finished) -> list[Event]:
        return self._release(self._sequencer.finish(finished, completed_at=int(time.time())))

    def fail(self, error: AttacheError) -> list[Event]:
        return self._release(self._sequencer.fail(error))

    def _release(self, events: list[Event]) -> list[Event]:
        released = events if self._streams else [event for event in events if event.is_terminal]
        self.released = self.released or bool(released)
        return released


class _ToolLoop:
    """The rounds of one turn."""

    def __init__(self, turn: TurnRequest, registry: ToolRegistry, client: _ClientStream, limits: LoopLimits) -> None:
        self._turn = turn
        self._registry = registry
        self._client = client
        self._limits = limits
        self._given = input_items(turn.body)
        self._unlisted = _unlisted(registry.listings, self._given)
        self._usage: Json | None = None

    async def run(self, below: Below) -> AsyncIterator[Event]:
        """Run rounds until the model is done, the client must act, or the rounds are used up."""
        for number in range(self._limits.max_rounds):
            view = RoundView(self._registry.gateway_tools)
            async for event in self._ask_model(below, self._round_turn(first=number == 0), view):
                yield event
            assert view.finished is not None
            self._usage = add_usage(self._usage, view.finished.usage)
            may_run = view.finished.status == "completed"
            async for event in self._release_held(view, run_calls=may_run):
                yield event
            if not may_run or view.client_called or not view.calls:
                for event in self._client.finish(replace(view.finished, usage=self._usage)):
                    yield event
                return
        out_of_rounds = Finished("incomplete", usage=self._usage, incomplete_details={"reason": OUT_OF_ROUNDS})
        for event in self._client.finish(out_of_rounds):
            yield event

    async def _ask_model(self, below: Below, turn: TurnRequest, view: RoundView) -> AsyncIterator[Event]:
        async for said in _strict_events(below, turn, self._limits.max_round_bytes):
            if self._unlisted and not isinstance(said, Started):
                for event in self._client.show(self._unlisted):
                    yield event
                self._unlisted = ()
            if view.feed(said):
                for event in self._client.show((said,)):
                    yield event

    async def _release_held(self, view: RoundView, *, run_calls: bool) -> AsyncIterator[Event]:
        """Show what a round held back, in the model's order, running its gateway calls all at once meanwhile.

        The calls of a round that was cut off or failed are not run and not shown.
        """
        calls = [GatewayCall(held.tool, held.arguments) for held in view.calls] if run_calls else []
        async with scheduled(calls, self._limits.calls) as results:
            pending = iter(results)
            for held in view.held:
                if not isinstance(held, HeldCall):
                    for event in self._client.show(held.events):
                        yield event
                elif run_calls:
                    for event in self._client.show(call_begun(held)):
                        yield event
                    for event in self._client.show(call_ended(held, await next(pending))):
                        yield event

    def _round_turn(self, *, first: bool) -> TurnRequest:
        """The turn as the model is to see it in its next round."""
        registry, body = self._registry, self._turn.body
        changes: Json = {}
        if not (first and isinstance(body["input"], str)):
            changes["input"] = model_input([*self._given, *self._client.output], registry)
        if not registry.function_tools:
            return self._turn.without("tools", "tool_choice").with_body(**changes)
        changes["tools"] = list(registry.function_tools)
        if body.get("tool_choice") is not None:
            choice = model_tool_choice(body["tool_choice"], registry)
            changes["tool_choice"] = choice if first else _fulfilled(choice)
        return self._turn.with_body(**changes)


async def _strict_events(below: Below, turn: TurnRequest, max_bytes: int) -> AsyncIterator[ModelEvent]:
    """What the model says in one round; the last event is `Finished`."""
    reader, accumulator = CanonicalReader(), Accumulator(max_bytes=max_bytes)
    async with aclosing(below(turn)) as events:
        async for event in events:
            for said in reader.read(event.data):
                for strict in accumulator.feed(said):
                    yield strict
    for strict in accumulator.close():
        yield strict


def _unlisted(listings: Sequence[McpListing], history: Sequence[Json]) -> Sequence[ModelEvent]:
    """The public life of the tool lists that this conversation has not seen yet."""
    listed = {item.get("server_label") for item in history if item.get("type") == "mcp_list_tools"}
    return [
        event
        for listing in listings
        if listing.server_label not in listed
        for event in listing_events(f"mcp_list_tools.{listing.server_label}", listing)
    ]


def _fulfilled(choice: object) -> object:
    """The tool choice once the call that it forced was made: forcing it again would never end."""
    if isinstance(choice, dict) and choice.get("type") == "allowed_tools":
        return {**choice, "mode": "auto"}
    return choice if choice == "none" else "auto"
