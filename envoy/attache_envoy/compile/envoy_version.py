"""Which Envoy is new enough for which placement, and for a chain with several ext_proc filters in any placement.

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
"""The oldest Envoy of each placement. `tests/envoys.py` runs the end-to-end tests against these."""

_REASON = {
    "fused": "older ones cannot start a response before the inference server is asked",
    "split": "older ones silently lose or truncate bodies that pass several ext_proc filters",
}
_INSTEAD = {
    "split": " Use a newer one, or `placement: fused`.",
    "fused": " Use a newer one, or make each chain a single ext_proc filter: no `isolate` and no `ext_proc` entry in "
    "it, and nothing native between hosted filters.",
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


def check_version(version: EnvoyVersion, placement: str, *, chained: bool) -> None:
    """Refuse an Envoy that is too old for a gateway.

    Args:
        version: the Envoy's.
        placement: `fused` or `split`.
        chained: whether a request passes several ext_proc filters, which fused placement does not rule out.

    Raises:
        ConfigError: it is; the message says why and what would be right.
    """
    rule = "split" if chained else placement
    oldest = OLDEST[rule]
    if version >= oldest:
        return
    subject = f"placement {placement}" if rule == placement else "a chain with several ext_proc filters"
    instead = _INSTEAD[placement] if version >= OLDEST["fused"] else " Use a newer one."
    raise ConfigError(
        f"Envoy {version} is too old: {subject} needs {oldest.major}.{oldest.minor} or later, because "
        f"{_REASON[rule]}.{instead}"
    )
