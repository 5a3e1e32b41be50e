"""Removes responses whose time is over, for as long as a process lives.

Each worker process looks for some now and then; the store lets one remove at a time, and a bounded number, so that
turns which are being saved need not wait for long.
"""

from __future__ import annotations

import asyncio
import random
from typing import NoReturn

import structlog

from attache_core.errors import StoreError
from attache_core.storage.store import Store

BATCH_PAUSE_S = 0.1
"""Between two transactions, for others to write."""

_log = structlog.get_logger(__name__)


async def keep_removing_expired(store: Store, interval_s: float) -> NoReturn:
    """Look every `interval_s` seconds, about: processes that start together spread. Runs until it is cancelled."""
    while True:
        await asyncio.sleep(interval_s * random.uniform(0.5, 1.5))  # noqa: S311 - spreads processes, no secret
        try:
            while await store.remove_expired():  # noqa: ASYNC110 - the store is only ever asked
                await asyncio.sleep(BATCH_PAUSE_S)
        except StoreError as error:
            _log.warning("expired responses not removed", reason=error.message)
