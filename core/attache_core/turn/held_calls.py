"""What a round held back, shown in the model's order, with its gateway-executed calls run or asked for meanwhile.

Decides which calls run: those within the budget that need no approval, or have it. Unaware of rounds and stores.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from attache_core.events.event import Event
from attache_core.tools.arguments import parse_arguments
from attache_core.tools.bugs import bugs_without_text
from attache_core.tools.scheduler import CallLimits, GatewayCall, scheduled
from attache_core.turn.approval_call import ApprovalCall, new_approval_call
from attache_core.turn.call_budget import CallBudget
from attache_core.turn.client_stream import ClientStream
from attache_core.turn.round_view import HeldCall, HeldItem


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """A call that runs now, or is refused without a question."""

    held: HeldCall
    call: GatewayCall


Planned = HeldItem | PlannedCall | ApprovalCall


def planned(held: Sequence[HeldItem | HeldCall], budget: CallBudget) -> list[Planned]:
    """What becomes of each; calls are counted in the budget, in their order, whether they run or are asked for."""
    return [entry if isinstance(entry, HeldItem) else _planned_call(entry, budget) for entry in held]


async def released(
    plan: Sequence[Planned], client: ClientStream, budget: CallBudget, limits: CallLimits
) -> AsyncGenerator[Sequence[Event], None]:
    """Show what was planned, in its order, running its calls all at once meanwhile."""
    if not plan:
        return
    calls = [entry.call for entry in plan if isinstance(entry, PlannedCall)]
    async with scheduled(calls, limits) as results:
        pending = iter(results)
        for entry in plan:
            if not isinstance(entry, PlannedCall):
                yield client.show(entry.events())
                continue
            held = entry.held
            with bugs_without_text():
                begun = held.tool.begun(held.made)
            yield client.show(begun)
            running = next(pending)
            async with aclosing(running.reports(limits.report_interval_s)) as reports:
                async for progress in reports:
                    with bugs_without_text():
                        progressed = held.tool.progressed(held.made, progress)
                    yield client.show(progressed)
            result = budget.charge(await running)
            with bugs_without_text():
                ended = held.tool.ended(held.made, result)
            yield client.show(ended)


def _planned_call(held: HeldCall, budget: CallBudget) -> PlannedCall | ApprovalCall:
    refusal = budget.refusal(held.name, held.arguments)
    if refusal is None and _must_be_asked_for(held):
        return new_approval_call(held.offered, held.arguments)
    return PlannedCall(held, GatewayCall(held.tool, held.arguments, held.parameters, refusal))


def _must_be_asked_for(held: HeldCall) -> bool:
    """A call that could not run is an error to the model at once: no user should have to judge it."""
    if held.approval_request_id is not None or not held.tool.needs_approval:
        return False
    try:
        parse_arguments(held.arguments, held.parameters)
    except ValueError:
        return False
    return True
