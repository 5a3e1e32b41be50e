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
    ("version", "placement"),
    [((1, 37, 0), "fused"), ((1, 39, 0), "fused"), ((1, 39, 0), "split"), ((1, 40, 0), "split"), ((2, 0, 0), "split")],
)
def test_version_that_is_new_enough_is_accepted(version: tuple[int, int, int], placement: str) -> None:
    check_version(EnvoyVersion(*version), placement)


@pytest.mark.parametrize(
    ("version", "placement", "message"),
    [
        (
            (1, 36, 4),
            "fused",
            (
                "Envoy 1.36.4 is too old: placement fused needs 1.37 or later, because older ones cannot start a "
                "response before the inference server is asked. Use a newer one."
            ),
        ),
        (
            (1, 38, 3),
            "split",
            (
                "Envoy 1.38.3 is too old: placement split needs 1.39 or later, because older ones silently lose "
                "or truncate bodies when several of our filters stand in one chain. Use a newer one, or "
                "`placement: fused`."
            ),
        ),
        (
            (1, 36, 9),
            "split",
            (
                "Envoy 1.36.9 is too old: placement split needs 1.39 or later, because older ones silently lose or "
                "truncate bodies when several of our filters stand in one chain. Use a newer one."
            ),
        ),
    ],
)
def test_version_that_is_too_old_is_refused_with_the_reason(
    version: tuple[int, int, int], placement: str, message: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        check_version(EnvoyVersion(*version), placement)
    assert refused.value.message == message
