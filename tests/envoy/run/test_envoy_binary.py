"""Which Envoy is run, and what is said of one that cannot be."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from attache_core.errors import ConfigError
from attache_envoy.gateway import parse_gateway
from attache_envoy.run.envoy_binary import checked_envoy, find_envoy, read_version


def fake_envoy(directory: Path, script: str) -> Path:
    path = directory / "envoy"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def test_the_setting_names_the_envoy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    envoy = fake_envoy(tmp_path, "exit 0")
    monkeypatch.setenv("ENVOY", str(envoy))
    assert find_envoy() == envoy


def test_without_a_setting_it_is_the_binary_of_the_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ENVOY", raising=False)
    spec = find_spec("envoy")
    assert spec is not None
    assert spec.origin is not None
    assert find_envoy() == Path(spec.origin).parent / "_bin" / "envoy"


@pytest.mark.parametrize("name", ["/nowhere/envoy", "no-such-command"])
def test_a_setting_that_names_nothing_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENVOY", name)
    with pytest.raises(ConfigError) as caught:
        find_envoy()
    assert caught.value.message == f"ENVOY={name} is not a program that can be run."


def test_the_version_is_what_envoy_prints(tmp_path: Path) -> None:
    assert read_version(fake_envoy(tmp_path, "echo; echo 'envoy  version: abc/1.40.0/Clean'")) == (
        "envoy  version: abc/1.40.0/Clean"
    )


def test_an_envoy_that_fails_is_refused(tmp_path: Path) -> None:
    envoy = fake_envoy(tmp_path, "exit 7")
    with pytest.raises(ConfigError, match=r"does not tell its version: .* returned non-zero exit status 7"):
        read_version(envoy)


FUSED = """
upstream: http://127.0.0.1:1
chains: {responses: [{filter: validate}, {filter: upstream_round}]}
"""
CUT = FUSED.replace("validate}", "validate, isolate: true}")


def test_envoy_that_is_too_old_for_the_chains_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    envoy = fake_envoy(tmp_path, "echo 'envoy  version: abc/1.37.0/Clean/RELEASE/BoringSSL'")
    monkeypatch.setenv("ENVOY", str(envoy))
    assert checked_envoy(parse_gateway(FUSED, "gateway.yaml")) == envoy
    with pytest.raises(
        ConfigError, match=r"^Envoy 1\.37\.0 is too old: a chain with several ext_proc filters needs 1\.39 "
    ):
        checked_envoy(parse_gateway(CUT, "gateway.yaml"))
