from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

import uvloop


def pytest_asyncio_loop_factories() -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """The event loop of worker processes."""
    return {"uvloop": uvloop.new_event_loop}
