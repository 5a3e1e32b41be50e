"""How inference servers write the same answer, one module for each family; sources are their recordings."""

from __future__ import annotations

from attache_core.testing.model_wire.choice import wire_for

__all__ = ["wire_for"]
