"""Which Envoy is accepted for which placement."""

from __future__ import annotations

import pytest

from attache_core.errors import ConfigError
from attache_envoy.compile.envoy_version import EnvoyVersion, check_version, parse_version

PRINTED = "\nenvoy  version: 0f5a1c2e9b7d/1.40.0/Clean/RELEASE/BoringSSL\n"


@pytest.mark.parametrize(
    ("text", "version"),
    [
        (PRINTED, EnvoyVersion(1, 40, 0)),
        ("envoy  version: 10.20.30/1.36.4/Modified/DEBUG/BoringSSL", EnvoyVersion(1, 36, 4)),
        ("envoy  version: abc/1.39.3-dev/Clean/RELEASE/BoringSSL", EnvoyVersion(1, 39, 3)),
        ("1.38.2", EnvoyVersion(1, 38, 2)),
    ],
)
def test_version_is_read_from_what_envoy_prints(text: str, version: EnvoyVersion) -> None:
    assert parse_version(text) == version


def test_text_without_version_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"^This is not what Envoy prints for --version: 'bash: no such file'\.$"):
        parse_version("bash: no such file\n")


@pytest.mark.parametrize(
    ("version", "placement", "chained"),
    [
        ((1, 37, 0), "fused", False),
        ((1, 39, 0), "fused", True),
        ((1, 39, 0), "split", True),
        ((1, 40, 0), "split", False),
        ((2, 0, 0), "split", True),
    ],
)
def test_version_that_is_new_enough_is_accepted(version: tuple[int, int, int], placement: str, chained: bool) -> None:
    check_version(EnvoyVersion(*version), placement, chained=chained)


@pytest.mark.parametrize(
    ("version", "placement", "chained", "message"),
    [
        (
            (1, 36, 4),
            "fused",
            False,
            (
                "Envoy 1.36.4 is too old: placement fused needs 1.37 or later, because older ones cannot start a "
                "response before the inference server is asked. Use a newer one."
            ),
        ),
        (
            (1, 38, 3),
            "split",
            True,
            (
                "Envoy 1.38.3 is too old: placement split needs 1.39 or later, because older ones silently lose "
                "or truncate bodies that pass several ext_proc filters. Use a newer one, or "
                "`placement: fused`."
            ),
        ),
        (
            (1, 36, 9),
            "split",
            True,
            (
                "Envoy 1.36.9 is too old: placement split needs 1.39 or later, because older ones silently lose or "
                "truncate bodies that pass several ext_proc filters. Use a newer one."
            ),
        ),
        (
            (1, 38, 3),
            "fused",
            True,
            (
                "Envoy 1.38.3 is too old: a chain with several ext_proc filters needs 1.39 or later, because older "
                "ones silently lose or truncate bodies that pass several ext_proc filters. Use a newer "
                "one, or make each chain a single ext_proc filter: no `isolate` and no `ext_proc` entry in it, and "
                "nothing native between hosted filters."
            ),
        ),
    ],
)
def test_version_that_is_too_old_is_refused_with_the_reason(
    version: tuple[int, int, int], placement: str, chained: bool, message: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        check_version(EnvoyVersion(*version), placement, chained=chained)
    assert refused.value.message == message
