"""When a worker that died is started again."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from attache_envoy.run.deaths import RecentDeaths
from attache_envoy.run.settings import RunSettings

SETTINGS = RunSettings(max_deaths=3, deaths_window_s=60, first_backoff_s=1, max_backoff_s=3)


def test_deaths_within_the_window_back_off_and_then_end() -> None:
    deaths = RecentDeaths(SETTINGS)
    assert [deaths.record(now_s) for now_s in (0, 1, 2, 3)] == [1, 2, 3, None]


def test_deaths_before_the_window_are_forgotten() -> None:
    deaths = RecentDeaths(SETTINGS)
    assert [deaths.record(now_s) for now_s in (0, 1, 2, 61.5, 62.5)] == [1, 2, 3, 2, 2]


@given(st.lists(st.floats(min_value=0, max_value=100), max_size=30))
def test_a_restart_is_refused_exactly_when_the_window_holds_too_many(pauses: list[float]) -> None:
    deaths, times, now_s = RecentDeaths(SETTINGS), [], 0.0
    for pause in pauses:
        now_s += pause
        times.append(now_s)
        recent = sum(now_s - time < SETTINGS.deaths_window_s for time in times)
        answer = deaths.record(now_s)
        assert (answer is None) == (recent > SETTINGS.max_deaths)
        assert answer is None or 0 < answer <= SETTINGS.max_backoff_s
