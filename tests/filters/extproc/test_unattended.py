"""Work that goes on when whoever attends to it is cancelled."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from attache_core.tools.task_scope import task_scope
from attache_core.types.turn import Unattended
from attache_filters.extproc.unattended import UnattendedTurns, open_unattended

TERMS = Unattended(timeout_s=60.0, max_turns=2)


class Work:
    """Runs until it is let go; says how it ended, after a clean-up that takes a while."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.begun, self.go_on, self.over = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.ended = ""
        self._failure = failure

    async def __call__(self) -> None:
        try:
            self.begun.set()
            await self.go_on.wait()
            if self._failure is not None:
                raise self._failure
            self.ended = "done"
        except asyncio.CancelledError:
            await asyncio.sleep(0)
            self.ended = "cancelled"
            raise
        finally:
            self.over.set()


async def leave(turns: UnattendedTurns, work: Work, terms: Unattended | None) -> None:
    """Attend to work, and be cancelled as soon as it has begun."""
    async with asyncio.timeout(5), task_scope() as tasks:
        attending = tasks.start(turns.attend(work, lambda: terms))
        await work.begun.wait()
        attending.cancel()
        await asyncio.wait([attending])
        assert attending.cancelled()


async def test_work_that_is_attended_to_ends_with_its_own_outcome(tmp_path: Path) -> None:
    async with open_unattended(tmp_path / "flag") as turns:
        work, broken = Work(), Work(ValueError("broken"))
        work.go_on.set()
        broken.go_on.set()

        await turns.attend(work, lambda: None)
        with pytest.raises(ValueError, match="broken"):
            await turns.attend(broken, lambda: TERMS)

    assert work.ended == "done"


async def test_work_is_cancelled_with_its_clean_up_unless_it_is_to_go_on(tmp_path: Path) -> None:
    async with open_unattended(tmp_path / "flag") as turns:
        work = Work()

        await leave(turns, work, None)

        assert (work.ended, (tmp_path / "flag").exists()) == ("cancelled", False)


async def test_work_goes_on_and_a_flag_says_so_until_the_last_of_it_has_ended(tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    async with open_unattended(flag) as turns:
        first, second = Work(), Work()
        await leave(turns, first, TERMS)
        await leave(turns, second, TERMS)

        for work, still in ((first, True), (second, False)):
            work.go_on.set()
            await asyncio.wait_for(work.over.wait(), 5)
            await asyncio.sleep(0)
            assert (work.ended, flag.exists()) == ("done", still)


async def test_work_above_the_bound_is_cancelled_and_the_log_says_why(tmp_path: Path) -> None:
    async with open_unattended(tmp_path / "flag") as turns:
        works = [Work() for _ in range(3)]
        with capture_logs() as logs:
            for work in works:
                await leave(turns, work, TERMS)

        assert [work.ended for work in works] == ["", "", "cancelled"]
        assert [(log["log_level"], log["max_unattended_turns"]) for log in logs] == [("warning", 2)]


async def test_work_over_its_time_is_cancelled_and_the_log_says_why(tmp_path: Path) -> None:
    async with open_unattended(tmp_path / "flag") as turns:
        work = Work()
        with capture_logs() as logs:
            await leave(turns, work, Unattended(timeout_s=0.01, max_turns=1))
            await asyncio.wait_for(work.over.wait(), 5)

        assert work.ended == "cancelled"
        assert [(log["log_level"], log["finish_timeout_s"]) for log in logs] == [("warning", 0.01)]


async def test_work_that_fails_when_nobody_attends_to_it_is_logged_and_disturbs_no_other(tmp_path: Path) -> None:
    async with open_unattended(tmp_path / "flag") as turns:
        broken, other = Work(ValueError("broken")), Work()
        with capture_logs() as logs:
            await leave(turns, broken, TERMS)
            await leave(turns, other, TERMS)
            broken.go_on.set()
            await asyncio.wait_for(broken.over.wait(), 5)
            await asyncio.sleep(0)
        other.go_on.set()
        await asyncio.wait_for(other.over.wait(), 5)

        assert other.ended == "done"
        assert [str(log["exc_info"]) for log in logs] == ["broken"]


async def test_end_of_the_process_cancels_what_goes_on_and_a_new_one_forgets_the_flag(tmp_path: Path) -> None:
    flag, work = tmp_path / "flag", Work()
    async with open_unattended(flag) as turns:
        await leave(turns, work, TERMS)
    assert (work.ended, flag.exists()) == ("cancelled", False)

    flag.touch()
    async with open_unattended(flag):
        assert not flag.exists()
