"""`tool_dispatch`: the tool-call loop. What is below it runs once per round."""

from __future__ import annotations

from collections.abc import AsyncIterator

from pydantic import Field

from attache_core.events.event import Event
from attache_core.tools.builtin import builtin_tool_types
from attache_core.tools.call_slots import MAX_WORKER_CALLS, CallSlots
from attache_core.tools.scheduler import CallLimits
from attache_core.turn.below import Below
from attache_core.turn.loop import LoopLimits, run_tool_loop
from attache_core.types.turn import TurnRequest
from attache_filters.sdk.filter import FilterConfig, Services, TurnFilter


class ToolDispatchConfig(FilterConfig):
    max_rounds: int = Field(default=10, ge=1, le=100)
    """Inference rounds of one turn; after the last one the response is `incomplete`."""

    max_calls: int = Field(default=128, ge=1, le=10_000)
    """Gateway-executed calls of one turn; of those above it the model is told that they were not run. The request's
    `max_tool_calls` may ask for fewer."""

    max_identical_calls: int = Field(default=3, ge=1, le=10_000)
    """How often one gateway-executed tool may be called with the same arguments in one turn; of a further such call the
    model is told that it was not run."""

    max_retained_bytes: int = Field(default=8 * 2**20, ge=64 * 1024)
    """Bytes that are kept of one response, over all its rounds: the text and the items of the model, the lists of tools
    and the results of calls, and a little for each item. Over it the turn fails. How the inference server cuts its
    deltas makes no difference."""

    max_output_bytes: int = Field(default=4 * 2**20, ge=1024)
    """Bytes that the results of one turn's calls may have together; the model is told of a result that is left out."""

    max_parallel_calls: int = Field(default=5, ge=1, le=64)
    """Gateway-executed calls of one round that run at the same time. With `parallel_tool_calls: false` they run one
    after the other."""

    max_worker_calls: int = Field(default=MAX_WORKER_CALLS, ge=1, le=100_000)
    """Gateway-executed calls of all turns of one worker process that run at the same time; further ones wait."""

    call_timeout_s: float = Field(default=60.0, gt=0, le=3600)
    """Seconds that one call may take, from the moment it begins; then it is cancelled, and the model is told."""

    call_progress_interval_s: float = Field(default=1.0, gt=0, le=3600)
    """Seconds between two events that tell of one call's progress, where its tool reports any; of what it reports in
    between, the latest is told."""

    progress_interval_s: float = Field(default=15.0, ge=0, le=3600)
    """Seconds without an event after which a streaming client gets `response.in_progress`, and again after as many: it
    counts as life with clients that ignore comments. 0 turns it off. Where the model has said nothing yet, the first
    one begins the response with HTTP status 200. From then on a failure is `response.failed`, which SDKs do not retry
    as they do a 429 or a 503: set it longer than an inference server takes to refuse a request."""


class ToolDispatch(TurnFilter[ToolDispatchConfig]):
    """Runs gateway-executed tool calls and asks below again; hands client-executed calls to the client."""

    config_type = ToolDispatchConfig
    calls_below_again = True

    @classmethod
    def may_be_bypassed(cls, config: ToolDispatchConfig) -> bool:
        """See `Filter.may_be_bypassed`."""
        return True

    def __init__(self, config: ToolDispatchConfig, services: Services) -> None:
        super().__init__(config, services)
        calls = CallLimits(
            max_parallel_calls=config.max_parallel_calls,
            call_timeout_s=config.call_timeout_s,
            report_interval_s=config.call_progress_interval_s,
            worker=CallSlots(config.max_worker_calls),
        )
        self._limits = LoopLimits(
            max_rounds=config.max_rounds,
            max_calls=config.max_calls,
            max_identical_calls=config.max_identical_calls,
            max_output_bytes=config.max_output_bytes,
            calls=calls,
            max_retained_bytes=config.max_retained_bytes,
            progress_interval_s=config.progress_interval_s,
        )
        self._types = builtin_tool_types(services.mcp, services.tools)

    def __call__(self, turn: TurnRequest, below: Below) -> AsyncIterator[Event]:
        return run_tool_loop(turn, below, self._types, self._limits, self.services.store.approvals)
