"""When a worker process looks for garbage, seen in a process of its own."""

from __future__ import annotations

import subprocess
import sys

WATCH = """
import gc
from attache_envoy.run import collector

passes = []
gc.callbacks.append(lambda phase, info: passes.append(info["generation"]) if phase == "start" else None)

collector.hold_off()
made = [[] for _ in range(100_000)]
print(len(passes), gc.isenabled())

collector.begin()
print(gc.isenabled(), gc.get_threshold(), gc.get_freeze_count() > 100_000, len(gc.get_objects()) < 1_000)

more = [[] for _ in range(25_000)]
print(passes)
"""


def test_nothing_is_looked_for_while_a_worker_starts_and_seldom_after() -> None:
    done = subprocess.run([sys.executable, "-c", WATCH], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.splitlines() == ["0 False", "True (10000, 20, 50) True True", "[0, 0]"]
