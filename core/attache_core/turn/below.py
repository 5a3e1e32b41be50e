"""How a step of a turn calls what is below it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable

from attache_core.events.event import Event
from attache_core.types.turn import TurnRequest

Below = Callable[[TurnRequest], AsyncGenerator[Event, None]]
"""Runs what is below, once per call: canonical events, the last of which is terminal.

Raises `AttacheError` before the first event; after it, a failure is the terminal event `response.failed`.
"""
