"""What `make test-envoys` runs: the Envoys that the product says are the oldest, and the tests that are for them."""

from __future__ import annotations

from pathlib import Path

import pytest

import envoys
from attache_envoy.compile.envoy_version import OLDEST
from envoys import main, pinned_version

pytest_plugins = ["pytester"]

TESTS = """
import pytest

@pytest.mark.parametrize("placement", ["fused", "split"])
def test_in(placement): pass

@pytest.mark.placements("split")
def test_chained(): pass

@pytest.mark.placements("split", "fused")
def test_both(): pass

def test_any(): pass
"""


def test_locks_pin_the_oldest_envoy_of_each_placement() -> None:
    assert {placement: pinned_version(placement) for placement in OLDEST} == OLDEST


@pytest.mark.parametrize(
    ("placements", "ran"),
    [
        (["fused"], ["test_in[fused]", "test_any"]),
        (["split"], ["test_in[split]", "test_chained", "test_any"]),
        (["fused", "split"], ["test_in[fused]", "test_in[split]", "test_chained", "test_both", "test_any"]),
    ],
)
def test_chosen_placements_run_the_tests_that_are_for_them(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, placements: list[str], ran: list[str]
) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makeconftest((Path(__file__).parent / "conftest.py").read_text())
    pytester.makepyfile(TESTS)
    passed, _, _ = pytester.inline_run(*(f"--placement={name}" for name in placements)).listoutcomes()
    assert [report.nodeid.partition("::")[2] for report in passed] == ran


@pytest.mark.parametrize(
    ("arguments", "good", "exit_code", "printed"),
    [
        ([], {"fused", "split"}, 0, "Envoy 1.37.0, placement fused: passed\nEnvoy 1.39.0, placement split: passed\n"),
        ([], {"split"}, 1, "Envoy 1.37.0, placement fused: FAILED\nEnvoy 1.39.0, placement split: passed\n"),
        (["split"], {"split"}, 0, "Envoy 1.39.0, placement split: passed\n"),
    ],
)
def test_run_ends_with_a_line_for_each_envoy_and_fails_when_one_did(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    *,
    arguments: list[str],
    good: set[str],
    exit_code: int,
    printed: str,
) -> None:
    for version in ("1.37.0", "1.39.0"):
        binary = tmp_path / version / "envoy" / "_bin" / "envoy"
        binary.parent.mkdir(parents=True)
        binary.write_text(f"#!/bin/sh\necho 'envoy  version: abc/{version}/Clean/RELEASE/BoringSSL'\n")
        binary.chmod(0o755)
    monkeypatch.setattr(envoys, "CACHE", tmp_path)
    monkeypatch.setattr(envoys, "run_tests", good.__contains__)
    assert main(arguments) == exit_code
    assert capsys.readouterr().out == printed
