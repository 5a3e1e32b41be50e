"""The directory of a running gateway."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from attache_envoy.run.run_dir import LOCK, private_run_dir


def test_it_is_private_and_gone_with_its_content_afterwards() -> None:
    with private_run_dir() as run_dir:
        assert run_dir.stat().st_mode & 0o777 == 0o700
        (run_dir / "file").touch()
    assert not run_dir.exists()


def test_with_a_long_temporary_directory_it_is_short_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / ("long" * 20)))
    with private_run_dir() as run_dir:
        assert run_dir.parent == Path("/tmp")


def test_what_a_killed_gateway_has_left_is_removed_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tempfile.TemporaryDirectory(prefix="t-", dir="/tmp") as parent:
        monkeypatch.setattr(tempfile, "tempdir", parent)
        abandoned, unlocked, link = (Path(parent, f"attache-{name}") for name in ("abandoned", "unlocked", "link"))
        for directory in (abandoned, unlocked, tmp_path / "elsewhere"):
            directory.mkdir()
            (directory / "gateway.json").touch()
        for directory in (abandoned, tmp_path / "elsewhere"):
            (directory / LOCK).touch()
        link.symlink_to(tmp_path / "elsewhere")
        with private_run_dir() as held, private_run_dir() as another:
            assert sorted(Path(parent).iterdir()) == sorted([held, another, unlocked, link])
        assert sorted(path.name for path in (tmp_path / "elsewhere").iterdir()) == ["gateway.json", LOCK]
