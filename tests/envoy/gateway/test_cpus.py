"""How many CPUs a process may use."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from attache_envoy.gateway import default_gateway, parse_gateway, with_options
from attache_envoy.gateway.cpus import usable_cpus
from attache_envoy.run.settings import RunSettings
from gateway_fakes import FILTERS


def a_machine(root: Path, group: str, quotas: dict[str, str]) -> Path:
    """A file system with the control group of this process and the quotas of some groups."""
    files = {"proc/self/cgroup": group, **{f"sys/fs/cgroup/{path}cpu.max": text for path, text in quotas.items()}}
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"{text}\n")
    return root


@pytest.fixture(autouse=True)
def _eight_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))


@pytest.mark.parametrize(
    ("group", "quotas", "cpus"),
    [
        ("0::/", {}, 8),
        ("0::/", {"": "max 100000"}, 8),
        ("0::/", {"": "400000 100000"}, 4),
        ("0::/", {"": "150000 100000"}, 2),
        ("0::/", {"": "10000 100000"}, 1),
        ("0::/", {"": "1600000 100000"}, 8),
        ("0::/pods/a", {"pods/a/": "max 100000", "pods/": "300000 100000"}, 3),
        ("0::/pods/a", {"pods/a/": "200000 100000", "pods/": "300000 100000"}, 2),
        ("9:cpu:/old\n0::/pods", {"pods/": "50000 10000", "old/": "1 1"}, 5),
        ("9:cpu:/old", {"old/": "100000 100000"}, 8),
        ("0::/", {"": "what is this"}, 8),
        ("0::/", {"": "100000 0"}, 8),
    ],
)
def test_cpus_are_those_of_the_scheduler_and_of_every_quota(
    group: str, quotas: dict[str, str], cpus: int, tmp_path: Path
) -> None:
    assert usable_cpus(a_machine(tmp_path, group, quotas)) == cpus


def test_machine_without_control_groups_has_the_schedulers_cpus(tmp_path: Path) -> None:
    assert usable_cpus(tmp_path) == 8


@pytest.mark.parametrize(("cpus", "workers"), [(1, 2), (2, 2), (3, 3), (400, 256)])
def test_auto_is_a_worker_for_each_cpu_and_two_at_least(
    cpus: int, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("attache_envoy.gateway.model.usable_cpus", lambda: cpus)
    of_file = parse_gateway("upstream: http://h\nworkers: auto", "gateway.yaml", filters=FILTERS)
    of_option = with_options(default_gateway("http://h", filters=FILTERS), workers="auto")
    assert (of_file.workers, of_option.workers) == (workers, workers)


def test_envoy_has_a_thread_for_each_cpu_unless_told_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("attache_envoy.run.settings.usable_cpus", lambda: 3)
    assert (RunSettings().concurrency, RunSettings(envoy_concurrency=1).concurrency) == (3, 1)
