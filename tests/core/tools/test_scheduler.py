from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attache_core.errors import ClientError
from attache_core.events.model_events import ModelEvent
from attache_core.json_codec import Json
from attache_core.tools.call_errors import protocol_error
from attache_core.tools.call_slots import CallSlots
from attache_core.tools.gateway_tool import CallMade, GatewayTool
from attache_core.tools.scheduler import CallLimits, CallResult, GatewayCall, scheduled

CANARY = "canary-7f3a"
LIMITS = CallLimits(max_parallel_calls=5, call_timeout_s=5)


@dataclass
class FakeTool(GatewayTool):
    """Answers with what `body` says, and remembers its calls."""

    body: Callable[[Json], Awaitable[CallResult]]
    alone: str | None = None
    calls: list[Json] = field(default_factory=list)

    @property
    def one_at_a_time(self) -> str | None:
        return self.alone

    def begun(self, call: CallMade) -> list[ModelEvent]:
        raise AssertionError(call)

    def ended(self, call: CallMade, result: CallResult) -> list[ModelEvent]:
        raise AssertionError(call, result)

    async def call(self, arguments: Json) -> CallResult:
        self.calls.append(arguments)
        return await self.body(arguments)


async def says(arguments: Json) -> CallResult:
    return CallResult(f"said {arguments}")


async def hangs(_: Json) -> CallResult:
    await asyncio.Event().wait()
    raise AssertionError("unreachable")


async def breaks(_: Json) -> CallResult:
    raise KeyError(CANARY)


async def run(*calls: GatewayCall, limits: CallLimits = LIMITS) -> list[CallResult]:
    async with asyncio.timeout(5), scheduled(calls, limits) as results:
        return [await result for result in results]


async def test_results_come_in_the_order_of_the_calls_whichever_ends_first() -> None:
    last_ended = asyncio.Event()

    async def waits(_: Json) -> CallResult:
        await last_ended.wait()
        return CallResult("first")

    async def ends(_: Json) -> CallResult:
        last_ended.set()
        return CallResult("last")

    results = await run(*[GatewayCall(FakeTool(body), "") for body in (waits, says, ends)])
    assert results == [CallResult("first"), CallResult("said {}"), CallResult("last")]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ("{'a': 1", "The arguments are not valid JSON."),
        ('{"a": 1', "The arguments are not valid JSON."),
        ("[1]", "The arguments are not a JSON object."),
        ("1", "The arguments are not a JSON object."),
        ("null", "The arguments are not a JSON object."),
        ('"{}"', "The arguments are not a JSON object."),
        ("NaN", "The arguments are not valid JSON."),
        ("[" * 100_000, "The arguments are not valid JSON."),
        ('{"a": "\\ud83d"}', "The arguments hold half of a surrogate pair, which is no character."),
    ],
)
async def test_malformed_arguments_are_told_and_not_dispatched(arguments: str, reason: str) -> None:
    tool, sibling = FakeTool(says), FakeTool(says)
    results = await run(GatewayCall(tool, arguments), GatewayCall(sibling, "{}"))
    refusal = CallResult(None, protocol_error(-32602, f"{reason} The tool was not called."))
    assert (results, tool.calls) == ([refusal, CallResult("said {}")], [])


@pytest.mark.parametrize("arguments", ["", "  ", "{}", " {} "])
async def test_no_arguments_are_an_empty_object(arguments: str) -> None:
    tool = FakeTool(says)
    await run(GatewayCall(tool, arguments))
    assert tool.calls == [{}]


async def test_whole_character_beyond_the_basic_plane_is_dispatched() -> None:
    tool = FakeTool(says)
    await run(GatewayCall(tool, '{"a": "\\ud83d\\ude00"}'))
    assert tool.calls == [{"a": "😀"}]


async def test_large_integer_in_arguments_keeps_its_digits() -> None:
    tool = FakeTool(says)
    await run(GatewayCall(tool, '{"a": 123456789012345678901234567890, "b": [-9223372036854775809]}'))
    assert tool.calls == [{"a": 123456789012345678901234567890, "b": [-9223372036854775809]}]


async def test_hanging_call_times_out_and_its_siblings_do_not() -> None:
    calls = [GatewayCall(FakeTool(body), "") for body in (says, hangs, says)]
    results = await run(*calls, limits=CallLimits(call_timeout_s=0.05))
    timed_out = CallResult(None, protocol_error(-32001, "The tool did not answer within 0.05 s."))
    assert results == [CallResult("said {}"), timed_out, CallResult("said {}")]


async def test_time_limit_starts_when_the_call_does() -> None:
    """The second waits longer for its turn than it may run, and has all of its time nevertheless."""
    calls = [GatewayCall(FakeTool(hangs), ""), GatewayCall(FakeTool(says), "")]
    results = await run(*calls, limits=CallLimits(max_parallel_calls=1, call_timeout_s=0.05))
    assert results[1] == CallResult("said {}")


async def test_bug_in_a_tool_is_a_result_and_its_text_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    results = await run(GatewayCall(FakeTool(breaks), ""), GatewayCall(FakeTool(says), ""))
    assert results == [
        CallResult(None, protocol_error(-32603, "The gateway failed to run the tool.")),
        CallResult("said {}"),
    ]
    assert "KeyError" in caplog.text
    assert CANARY not in caplog.text


async def test_at_most_max_parallel_calls_run_at_once() -> None:
    running, most, five_run = 0, 0, asyncio.Event()

    async def counts(_: Json) -> CallResult:
        nonlocal running, most
        running += 1
        most = max(most, running)
        if running == 5:
            five_run.set()
        await five_run.wait()
        await asyncio.sleep(0)
        running -= 1
        return CallResult("")

    results = await run(*[GatewayCall(FakeTool(counts), "")] * 20)
    assert (len(results), most) == (20, 5)


async def test_leaving_the_block_cancels_what_runs_and_what_waits() -> None:
    started, ended = asyncio.Event(), []

    async def notes_its_end(_: Json) -> CallResult:
        started.set()
        try:
            return await hangs({})
        finally:
            ended.append(True)

    waiting = FakeTool(says)
    calls = [GatewayCall(FakeTool(notes_its_end), ""), GatewayCall(waiting, "")]
    async with asyncio.timeout(5):
        async with scheduled(calls, CallLimits(max_parallel_calls=1)):
            await started.wait()
    assert (ended, waiting.calls) == ([True], [])


async def test_error_in_the_block_passes_as_it_is() -> None:
    error = ClientError("no")
    with pytest.raises(ClientError) as raised:
        async with scheduled([GatewayCall(FakeTool(hangs), "")], LIMITS):
            raise error
    assert raised.value is error


async def test_generator_that_yields_in_the_block_can_be_closed() -> None:
    async def events() -> AsyncGenerator[int, None]:
        async with scheduled([GatewayCall(FakeTool(hangs), "")], LIMITS):
            yield 1

    stream = events()
    async with asyncio.timeout(5):
        assert await anext(stream) == 1
        await stream.aclose()


async def test_cancelling_the_caller_cancels_the_calls() -> None:
    started = asyncio.Event()
    cancelled = []

    async def notes_cancellation(_: Json) -> CallResult:
        started.set()
        try:
            return await hangs({})
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        caller = tasks.create_task(run(GatewayCall(FakeTool(notes_cancellation), "")))
        await started.wait()
        caller.cancel()
    assert cancelled == [True]


async def test_call_that_is_refused_is_not_run() -> None:
    tool, no = FakeTool(says), CallResult(None, protocol_error(1, "No."))

    assert await run(GatewayCall(tool, "{}", refusal=no), GatewayCall(tool, "{}")) == [no, CallResult("said {}")]
    assert tool.calls == [{}]


async def test_arguments_that_are_not_of_the_schema_are_told_and_not_dispatched() -> None:
    tool = FakeTool(says)
    schema: Json = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}

    missing, wrong, right = await run(*[GatewayCall(tool, text, schema) for text in ("", '{"a": 1}', '{"a": "x"}')])

    told = "The arguments are not what the tool takes: {}. The tool was not called."
    assert missing == CallResult(None, protocol_error(-32602, told.format("'a' is missing")))
    assert wrong == CallResult(None, protocol_error(-32602, told.format("a must be of type string")))
    assert (right, tool.calls) == (CallResult("said {'a': 'x'}"), [{"a": "x"}])


class Crowd:
    """Counts how many calls run at once, each of which waits until as many as may have come."""

    def __init__(self) -> None:
        self.now = self.most = 0

    async def __call__(self, _: Json) -> CallResult:
        self.now += 1
        self.most = max(self.most, self.now)
        for _turn in range(10):
            await asyncio.sleep(0)
        self.now -= 1
        return CallResult("done")


async def test_all_rounds_of_a_worker_share_its_bound() -> None:
    crowd = Crowd()
    limits = CallLimits(max_parallel_calls=5, call_timeout_s=5, worker=CallSlots(3))

    async with asyncio.TaskGroup() as rounds:
        for _ in range(4):
            rounds.create_task(run(*[GatewayCall(FakeTool(crowd), "{}") for _ in range(4)], limits=limits))

    assert (crowd.most, crowd.now) == (3, 0)


async def test_tools_that_exclude_one_another_run_one_at_a_time_and_the_others_meanwhile() -> None:
    alone, others = Crowd(), Crowd()
    limits = CallLimits(max_parallel_calls=2, call_timeout_s=5, worker=CallSlots())
    calls = [FakeTool(alone, "printer"), FakeTool(alone, "printer"), FakeTool(alone, "printer"), FakeTool(others)]

    async with asyncio.TaskGroup() as rounds:
        for _ in range(3):
            rounds.create_task(run(*[GatewayCall(tool, "{}") for tool in calls], limits=limits))

    assert alone.most == 1
    assert others.most == 3


async def test_tool_whose_own_work_was_cancelled_fails_alone() -> None:
    async def awaits_what_is_cancelled(_: Json) -> CallResult:
        work = asyncio.get_running_loop().create_future()
        work.cancel()
        await work
        raise AssertionError("unreachable")

    results = await run(GatewayCall(FakeTool(awaits_what_is_cancelled), ""), GatewayCall(FakeTool(says), ""))
    failed = CallResult(None, protocol_error(-32603, "The gateway failed to run the tool."))
    assert results == [failed, CallResult("said {}")]


@settings(max_examples=60, deadline=None)
@given(
    rounds=st.lists(
        st.tuples(
            st.lists(st.sampled_from(["says", "hangs", "breaks", "alone", "alone hangs"]), min_size=1, max_size=6),
            st.integers(0, 12) | st.none(),
        ),
        max_size=8,
    ),
    slots=st.integers(1, 3),
)
def test_whatever_becomes_of_rounds_they_give_all_slots_back(
    rounds: list[tuple[list[str], int | None]], slots: int
) -> None:
    """Each round ends by itself or, after some steps of the event loop, because its client leaves."""
    asyncio.run(_give_all_slots_back(rounds, CallSlots(slots), slots))


async def _give_all_slots_back(rounds: list[tuple[list[str], int | None]], worker: CallSlots, slots: int) -> None:
    limits = CallLimits(max_parallel_calls=2, call_timeout_s=0.005, worker=worker)
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        running = [
            (tasks.create_task(run(*[GatewayCall(_tool(kind), "{}") for kind in kinds], limits=limits)), steps)
            for kinds, steps in rounds
        ]
        for task, steps in running:
            for _ in range(steps or 0):
                await asyncio.sleep(0)
            if steps is not None:
                task.cancel()
    crowd = Crowd()
    await run(*[GatewayCall(FakeTool(crowd), "{}") for _ in range(slots * 2)], limits=replace(LIMITS, worker=worker))
    assert crowd.most == slots
    assert await run(GatewayCall(FakeTool(says, "printer"), "{}"), limits=limits) == [CallResult("said {}")]


def _tool(kind: str) -> FakeTool:
    bodies = {"says": says, "hangs": hangs, "breaks": breaks, "alone": says, "alone hangs": hangs}
    return FakeTool(bodies[kind], "printer" if kind.startswith("alone") else None)


async def test_hundreds_of_calls_in_one_round_are_run_a_few_at_a_time_and_have_their_results() -> None:
    crowd = Crowd()
    results = await run(*[GatewayCall(FakeTool(crowd), "{}") for _ in range(500)])
    assert (len(results), crowd.most, crowd.now) == (500, 5, 0)
