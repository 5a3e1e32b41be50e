"""The benchmarks are a package at the root of the repository, which is on nobody's path: find it from here."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = str(Path(__file__).parents[2])
if ROOT not in sys.path:
    # Last, so that the folder `envoy` at the root hides no installed package.
    sys.path.append(ROOT)
