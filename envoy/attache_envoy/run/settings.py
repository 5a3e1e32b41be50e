"""How a gateway is run, as opposed to what it does: that is the gateway file's."""

from __future__ import annotations

from dataclasses import dataclass

from attache_envoy.gateway.cpus import usable_cpus


@dataclass(frozen=True, slots=True)
class RunSettings:
    """Times in seconds.

    Attributes:
        grace_s: how long turns under way may go on after the gateway was told to stop.
        stop_s: how long a process may take from SIGTERM to its end, before SIGKILL.
        startup_s: how long Envoy may take to open its listener.
        ready_s: how long `running_gateway` waits until a turn would succeed; `attache up` waits as long as it takes.
        max_deaths: so many deaths of workers within `deaths_window_s` are answered by a restart; one more ends the
            gateway.
        deaths_window_s: see `max_deaths`.
        first_backoff_s: the pause before a worker's first restart; it doubles with each death in the window.
        max_backoff_s: the longest pause before a restart.
        envoy_concurrency: Envoy's worker threads; None means one per CPU that this process may use.
    """

    grace_s: float = 30.0
    stop_s: float = 5.0
    startup_s: float = 30.0
    ready_s: float = 60.0
    max_deaths: int = 5
    deaths_window_s: float = 60.0
    first_backoff_s: float = 0.1
    max_backoff_s: float = 5.0
    envoy_concurrency: int | None = None

    @property
    def concurrency(self) -> int:
        """Envoy's worker threads."""
        return self.envoy_concurrency or usable_cpus()
