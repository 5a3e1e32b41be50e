"""The tool loop: what we do next.

One turn is a loop of rounds. A round asks the model (`below`); gateway-executed calls that it made are run and their
results are told to the model in the next round; client-executed calls end the turn and are returned to the client. All
rounds are one response: one `response.created`, one terminal event, one continuous numbering. A call that a user must
approve ends the turn as well; the turn that brings the approval runs it before its first round.

The accumulator knows what the model said and the sequencer what the client sees; here it is decided what of the one
becomes part of the other. Invariant: what the model is told in the next round, or in the next turn, is made of the
input and the response's `output` alone.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace

from attache_core.errors import AttacheError
from attache_core.events.accumulator import Accumulator
from attache_core.events.dialects import CanonicalReader
from attache_core.events.event import Event
from attache_core.events.event_stream import Batch, batched, batches, until_failure
from attache_core.events.item_assembly import ByteBudget
from attache_core.events.model_events import Finished, ItemDone, ModelEvent
from attache_core.json_codec import Json, encode
from attache_core.storage.approvals import ApprovalStore
from attache_core.tools.choice import fulfilled, model_tool_choice
from attache_core.tools.client.additional_tools import with_additional_tools
from attache_core.tools.client.tool_search import LoadedTools, with_loaded_tools
from attache_core.tools.history import model_input
from attache_core.tools.registry import ToolRegistry, build_registry
from attache_core.tools.scheduler import CallLimits
from attache_core.tools.tool_types import ToolTypes
from attache_core.turn.approval_call import ApprovalCall
from attache_core.turn.approvals import ask, redeem, refuse_unanswerable
from attache_core.turn.below import Below
from attache_core.turn.call_budget import CallBudget
from attache_core.turn.client_stream import ClientStream
from attache_core.turn.held_calls import planned, released
from attache_core.turn.once import forbid_retry
from attache_core.turn.pending_approvals import answered_now
from attache_core.turn.round_view import HeldCall, HeldItem, RoundView
from attache_core.turn.silence import with_signs_of_life
from attache_core.turn.truncation import truncating
from attache_core.types.ids import new_id
from attache_core.types.turn import TurnRequest, input_items

OUT_OF_ROUNDS = "max_messages"
"""`incomplete_details.reason` of a response whose model still called tools in its last allowed round: the one of the
API's reasons that means a bound on what the model may say, other than on its tokens."""


@dataclass(frozen=True, slots=True)
class LoopLimits:
    """Bounds of a turn.

    Attributes:
        max_rounds: inference rounds of one turn; after the last one the response is `incomplete`.
        max_retained_bytes: what is kept of the response, over all rounds; over it the turn fails. It is counted by the
            text and the items that are kept, so how a server cuts its deltas makes no difference.
        max_calls: gateway-executed calls of one turn; the request's `max_tool_calls` may ask for fewer.
        max_identical_calls: of these, those of one tool with the same arguments.
        max_output_bytes: what the results of these calls may take together.
        calls: bounds of the gateway-executed calls of one round.
        progress_interval_s: seconds of silence after which a streaming client gets a sign of life; 0 for none.
    """

    max_rounds: int = 10
    max_retained_bytes: int = 8 * 1024 * 1024
    max_calls: int = 128
    max_identical_calls: int = 3
    max_output_bytes: int = 4 * 1024 * 1024
    calls: CallLimits = field(default_factory=CallLimits)
    progress_interval_s: float = 15.0


_Steps = AsyncGenerator[Sequence[Event], None]
"""The events of a turn; those that are made together come out together, so none that has its number waits unseen."""


@dataclass(frozen=True, slots=True)
class _Means:
    """What a turn is run with."""

    below: Below
    types: ToolTypes
    limits: LoopLimits
    approvals: ApprovalStore | None
    client: ClientStream


@batched
async def run_tool_loop(
    turn: TurnRequest, below: Below, types: ToolTypes, limits: LoopLimits, approvals: ApprovalStore | None = None
) -> AsyncGenerator[Batch, None]:
    """Answer one turn.

    Yields the canonical events of the whole turn; only the terminal one when the turn is not streamed. A streaming
    client gets `response.created` before any tool server is contacted, and `response.in_progress` again and again while
    there is nothing else to tell: a slow tool server, model or tool does not look like a dead gateway. From its first
    event on a client has its HTTP status, so what fails later is `response.failed`.

    Without `approvals` no call can be approved, and what might need it is refused.

    Raises:
        ClientError: the tools cannot be used as declared, or an approval is given that was not asked for, or not for
            this call.
        StoreError: approvals cannot be written or looked up.
        AttacheError: what `below` raises, as long as nothing was yielded.
    """
    if turn.facts.response_id is None:
        turn = turn.with_facts(response_id=new_id("resp"))
    given = input_items(turn.body)
    declared: Sequence[Json] = turn.body.get("tools") or []
    types.check(declared)
    loaded = with_loaded_tools(with_additional_tools(declared, given), given)
    refuse_unanswerable(loaded.tools, types, turn if approvals is not None else turn.with_facts(stored=False))
    if loaded.tools != declared:
        turn = turn.with_body(tools=loaded.tools)
    client = ClientStream(turn, types.public([*declared, *loaded.tools[len(declared) :]]))
    steps = _run_turn(turn, loaded, _Means(truncating(below), types, limits, approvals, client))
    if turn.stream and limits.progress_interval_s:
        steps = with_signs_of_life(steps, interval_s=limits.progress_interval_s, sign=client.progress)
    try:
        async with aclosing(steps):
            async for shown in steps:
                if shown:
                    yield shown
    except AttacheError as error:
        if not client.released:
            forbid_retry(error, client.output)
            raise
        if failed := client.fail(error):
            yield failed


async def _run_turn(turn: TurnRequest, loaded: LoadedTools, means: _Means) -> _Steps:
    """All of a turn but its failure; no step is empty, because what the client does not see is silence to it."""
    answers = answered_now(input_items(turn.body), turn.facts.history_items or 0)
    # Answers that cannot be taken are an HTTP error, so nothing is said before they are.
    if turn.stream and not answers and means.types.needs_discovery(loaded.tools):
        yield means.client.start()
    registry = await build_registry(loaded.tools, means.types, loaded.found)
    async with registry.serving():
        approved = await redeem(answers, registry, turn, means.approvals)
        if answers and turn.body.get("tool_choice") is not None:
            turn = turn.with_body(tool_choice=fulfilled(turn.body["tool_choice"]))
        async with aclosing(_run_rounds(turn, means, registry, approved)) as steps:
            async for shown in steps:
                if shown:
                    yield shown


async def _run_rounds(turn: TurnRequest, means: _Means, registry: ToolRegistry, approved: Sequence[HeldCall]) -> _Steps:
    """Run the calls that were approved, then rounds until the model is done, somebody must act, or they are used up."""
    given, client, limits = input_items(turn.body), means.client, means.limits
    retained = ByteBudget(limits.max_retained_bytes, what="What is kept of this response")
    budget = _budget(turn, limits, retained)
    announced = [event for announcement in registry.announcements for event in announcement.events(given)]
    yield client.owe(_kept(announced, retained))
    calls = _call_limits(turn, limits)
    if approved:
        async with aclosing(released(planned(approved, budget), client, budget, calls)) as steps:
            async for shown in steps:
                yield shown
    for number in range(limits.max_rounds):
        asked = _round_turn(turn, [*given, *client.output], registry, first=number == 0)
        round_ = _Round(RoundView(registry.tools), client, retained)
        async with aclosing(means.below(asked)) as events:
            async for batch in batches(events):
                shown, failure = until_failure(round_.feed(batch))
                yield shown
                if failure is not None:
                    raise failure
        yield round_.close()
        finished = round_.finished
        client.add_usage(finished.usage)
        plan = planned(round_.released(), budget)
        if plan:
            async with aclosing(released(plan, client, budget, calls)) as steps:
                async for shown in steps:
                    yield shown
        requests = [entry for entry in plan if isinstance(entry, ApprovalCall)]
        await ask(requests, turn, means.approvals)
        if requests or finished.status != "completed" or round_.view.client_called or not round_.view.calls:
            yield client.finish(finished)
            return
    yield client.finish(Finished("incomplete", incomplete_details={"reason": OUT_OF_ROUNDS}))


class _Round:
    """From one round's canonical events to what of them the client is shown at once."""

    def __init__(self, view: RoundView, client: ClientStream, retained: ByteBudget) -> None:
        self.view = view
        self._client = client
        self._reader = CanonicalReader()
        self._accumulator = Accumulator(budget=retained)

    def feed(self, batch: Batch) -> Iterator[Event]:
        """What follows from these events; nothing is numbered before it was accepted."""
        for event in batch:
            for said in self._reader.read_event(event):
                for portion in self._accumulator.portions(said):
                    yield from self._show(self._accumulator.feed(portion))

    def close(self) -> list[Event]:
        """Below has ended. Without a terminal event, which `Below` promises, the round was cut off."""
        return self._show(self._accumulator.close())

    @property
    def finished(self) -> Finished:
        """How the round ended, once it is closed."""
        assert self.view.finished is not None
        return self.view.finished

    def released(self) -> Sequence[HeldItem | HeldCall]:
        """What was held back and counts; the calls of a round that was cut off or failed do not."""
        if self.finished.status == "completed":
            return self.view.held
        return [entry for entry in self.view.held if isinstance(entry, HeldItem)]

    def _show(self, said: Iterable[ModelEvent]) -> list[Event]:
        return self._client.show(shown for event in said for shown in self.view.feed(event))


def _kept(said: list[ModelEvent], retained: ByteBudget) -> list[ModelEvent]:
    """Events of items that no round's answer holds, counted as kept."""
    for event in said:
        if isinstance(event, ItemDone):
            retained.spend(len(encode(event.item)))
    return said


def _budget(turn: TurnRequest, limits: LoopLimits, retained: ByteBudget) -> CallBudget:
    wanted = turn.body.get("max_tool_calls")
    max_calls = min(limits.max_calls, wanted) if isinstance(wanted, int) else limits.max_calls
    return CallBudget(
        max_calls=max_calls,
        max_identical_calls=limits.max_identical_calls,
        max_output_bytes=limits.max_output_bytes,
        retained=retained,
    )


def _call_limits(turn: TurnRequest, limits: LoopLimits) -> CallLimits:
    """Servers may ignore `parallel_tool_calls: false`: what they call at once is then run one after the other."""
    alone = turn.body.get("parallel_tool_calls") is False
    return replace(limits.calls, max_parallel_calls=1) if alone else limits.calls


def _round_turn(turn: TurnRequest, items: Sequence[Json], registry: ToolRegistry, *, first: bool) -> TurnRequest:
    """The turn as the model is to see it in its next round."""
    changes: Json = {}
    if not registry.function_tools:
        turn = turn.without("tools", "tool_choice")
    if turn.stream:
        # The client's stream is padded here; below, that would be work for nothing.
        changes["stream_options"] = {**(turn.body.get("stream_options") or {}), "include_obfuscation": False}
    if not (first and isinstance(turn.body.get("input"), str)):
        changes["input"] = model_input(items, registry)
    if not registry.function_tools:
        return turn.with_body(**changes) if changes else turn
    changes["tools"] = list(registry.function_tools)
    if turn.body.get("tool_choice") is not None:
        choice = model_tool_choice(turn.body["tool_choice"], registry)
        changes["tool_choice"] = choice if first else fulfilled(choice)
    return turn.with_body(**changes)
