"""Runs the gateway-executed calls of one round: at once, a few at a time, each with a time limit of its own.

Unaware of tool types, items and events. A call never harms its siblings: whatever happens to it becomes its result.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

from attache_core.json_codec import Json
from attache_core.tools.arguments import parse_arguments
from attache_core.tools.bugs import log_bug
from attache_core.tools.call_errors import INTERNAL_ERROR, INVALID_PARAMS, REQUEST_TIMEOUT, protocol_error
from attache_core.tools.call_slots import CallSlots
from attache_core.tools.gateway_tool import CallResult, GatewayTool, Report
from attache_core.tools.running_call import RunningCall
from attache_core.tools.task_scope import task_scope

__all__ = ["CallLimits", "CallResult", "GatewayCall", "GatewayTool", "scheduled"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CallLimits:
    """Bounds of the calls of one round.

    Attributes:
        max_parallel_calls: how many run at once; the others wait for their turn.
        call_timeout_s: seconds for one call, from when it starts to run.
        report_interval_s: seconds between two reports of one call's progress.
        worker: what all rounds of the worker share; None for rounds that share nothing.
    """

    max_parallel_calls: int = 5
    call_timeout_s: float = 60.0
    report_interval_s: float = 1.0
    worker: CallSlots | None = None


@dataclass(frozen=True, slots=True)
class GatewayCall:
    """One call that the model made.

    Attributes:
        arguments: the JSON text as the model wrote it; may be malformed. An empty text means no arguments.
        parameters: the JSON schema that they should have.
        refusal: the result of a call that is not to be run.
    """

    tool: GatewayTool
    arguments: str
    parameters: object = None
    refusal: CallResult | None = None


@asynccontextmanager
async def scheduled(calls: Sequence[GatewayCall], limits: CallLimits) -> AsyncIterator[Sequence[RunningCall]]:
    """Start all calls; the results can be awaited in the order of the calls, and none of them raises.

    Leaving the block cancels what still runs and waits until it has ended.
    """
    round_slots = asyncio.Semaphore(limits.max_parallel_calls)
    worker = limits.worker or CallSlots()
    async with task_scope() as tasks:
        runs = [partial(_run, call, round_slots, worker, limits.call_timeout_s) for call in calls]
        yield [RunningCall(tasks, run) for run in runs]


async def _run(
    call: GatewayCall, round_slots: asyncio.Semaphore, worker: CallSlots, timeout_s: float, report: Report
) -> CallResult:
    if call.refusal is not None:
        return call.refusal
    try:
        arguments = parse_arguments(call.arguments, call.parameters)
    except ValueError as error:
        return _failed(INVALID_PARAMS, f"{error} The tool was not called.")
    async with worker.taken(call.tool.one_at_a_time, round_slots):
        return await _call(call.tool, arguments, timeout_s, report)


async def _call(tool: GatewayTool, arguments: Json, timeout_s: float, report: Report) -> CallResult:
    try:
        async with asyncio.timeout(timeout_s) as limit:
            return await tool.call_reporting(arguments, report)
    except TimeoutError:
        if limit.expired():
            return _failed(REQUEST_TIMEOUT, f"The tool did not answer within {timeout_s:g} s.")
        return _failed(REQUEST_TIMEOUT, "The tool did not answer in time.")
    except asyncio.CancelledError:
        if _is_cancelled():
            raise
        _log.error("A tool was cancelled by itself instead of returning a result.")
        return _failed(INTERNAL_ERROR, "The gateway failed to run the tool.")
    except Exception as error:  # noqa: BLE001 - the edge to code of tools: a bug in one must not end its siblings
        log_bug(error)
        return _failed(INTERNAL_ERROR, "The gateway failed to run the tool.")


def _is_cancelled() -> bool:
    """Whether somebody wants this task to end; what a tool awaits may be cancelled without that."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _failed(code: int, message: str) -> CallResult:
    return CallResult(None, protocol_error(code, message))
