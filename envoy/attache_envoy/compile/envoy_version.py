"""Which Envoy is new enough for which placement.

Source: exchanges hashed at both ends through chains of full-duplex ext_proc filters. Envoys before 1.39 lose or
truncate bodies, with HTTP 200, as soon as two of them stand in one chain; before 1.37 a response cannot be started
before the upstream is asked.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from attache_core.errors import ConfigError


class EnvoyVersion(NamedTuple):
    """A release of Envoy."""

    major: int
    minor: int
    patch: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"


OLDEST = {"fused": EnvoyVersion(1, 37, 0), "split": EnvoyVersion(1, 39, 0)}
"""The oldest Envoy of each placement."""

_REASON = {
    "fused": "older ones cannot start a response before the inference server is asked",
    "split": "older ones silently lose or truncate bodies when several of our filters stand in one chain",
}


def parse_version(text: str) -> EnvoyVersion:
    """Read what `envoy --version` prints.

    Raises:
        ConfigError: there is no version in it.
    """
    found = re.search(r"\bversion: [^/\s]+/(\d+)\.(\d+)\.(\d+)", text) or re.search(r"\b(\d+)\.(\d+)\.(\d+)\b", text)
    if found is None:
        raise ConfigError(f"This is not what Envoy prints for --version: {text.strip()[:200]!r}.")
    major, minor, patch = (int(part) for part in found.groups())
    return EnvoyVersion(major, minor, patch)


def check_version(version: EnvoyVersion, placement: str) -> None:
    """Refuse an Envoy that is too old for a placement (`fused` or `split`).

    Raises:
        ConfigError: it is; the message says why and what would be right.
    """
    oldest = OLDEST[placement]
    if version >= oldest:
        return
    instead = " Use a newer one, or `placement: fused`." if version >= OLDEST["fused"] else " Use a newer one."
    raise ConfigError(
        f"Envoy {version} is too old: placement {placement} needs {oldest.major}.{oldest.minor} or later, because "
        f"{_REASON[placement]}.{instead}"
    )
