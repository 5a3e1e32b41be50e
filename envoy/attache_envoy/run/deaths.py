"""When a process that keeps dying is worth another start. Pure: the caller brings the time."""

from __future__ import annotations

from collections import deque

from attache_envoy.run.settings import RunSettings


class RecentDeaths:
    """The deaths of the last `deaths_window_s` seconds, all workers counted together."""

    def __init__(self, settings: RunSettings) -> None:
        self._settings = settings
        self._times: deque[float] = deque(maxlen=settings.max_deaths + 1)

    def record(self, now_s: float) -> float | None:
        """Seconds to wait before the restart, or None when this death was one too many.

        Args:
            now_s: a monotonic time; never less than at the call before.
        """
        self._times.append(now_s)
        recent = sum(now_s - time < self._settings.deaths_window_s for time in self._times)
        if recent > self._settings.max_deaths:
            return None
        return min(self._settings.first_backoff_s * 2.0 ** (recent - 1), self._settings.max_backoff_s)
