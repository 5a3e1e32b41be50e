"""What a running call reports: the latest counts, told at most once in an interval, and nothing after its end."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from attache_core.tools.gateway_tool import CallProgress, CallResult, Report
from attache_core.tools.running_call import RunningCall
from attache_core.tools.task_scope import task_scope

DONE = CallResult("done")


class Work:
    """A call that the test lets report and end."""

    def __init__(self) -> None:
        self.report: Report | None = None
        self._end = asyncio.Event()

    async def run(self, report: Report) -> CallResult:
        self.report = report
        await self._end.wait()
        return DONE

    def __call__(self, report: Report) -> Coroutine[Any, Any, CallResult]:
        return self.run(report)

    def say(self, *done: float) -> None:
        assert self.report is not None
        for each in done:
            self.report(CallProgress(each))

    def end(self) -> None:
        self._end.set()


async def test_call_that_reports_nothing_ends_without_a_report() -> None:
    work = Work()
    async with asyncio.timeout(5), task_scope() as tasks:
        running = RunningCall(tasks, work)
        work.end()
        assert [report async for report in running.reports(0.0)] == []
        assert await running == DONE


async def test_of_reports_that_come_together_the_latest_is_told() -> None:
    work = Work()
    told = []
    async with asyncio.timeout(5), task_scope() as tasks:
        running = RunningCall(tasks, work)
        await asyncio.sleep(0)
        work.say(1, 2, 3)
        async for report in running.reports(0.0):
            told.append(report.done)
            work.say(4, 5) if len(told) == 1 else work.end()
    assert told == [3, 5]


async def test_report_within_the_interval_after_another_is_not_told_when_the_call_has_ended() -> None:
    """And the end of the call is not held back by the interval."""
    work = Work()
    told = []
    async with asyncio.timeout(5), task_scope() as tasks:
        running = RunningCall(tasks, work)
        await asyncio.sleep(0)
        work.say(1)
        async for report in running.reports(3600.0):
            told.append(report.done)
            work.say(2)
            work.end()
        assert await running == DONE
    assert told == [1]
