"""Streams that are open at the same time, and how late each of their deltas came.

An open loop: the model server sends by clocks of its own, whatever becomes of it, and says in each delta when that was
(`model_stamps`). A delta is late by what lies between then and the moment at which its event was complete here. Streams
begin evenly spread over a while, so that their events do not come all at once.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from dataclasses import dataclass
from time import monotonic_ns

from benchmarks.exchange import ClientConnection, Exchanged, connect, request_bytes

_STAMPED = re.compile(rb'"delta": ?"(\d{16}) ')


@dataclass(frozen=True, slots=True)
class Delta:
    """When one was sent, on CLOCK_MONOTONIC, and how long it took to come; microseconds."""

    sent_us: int
    delay_us: int


class DeltaReader:
    """Reads the deltas of one stream, over any cut of its bytes."""

    def __init__(self) -> None:
        self.deltas: list[Delta] = []
        self._open = b""

    def feed(self, data: bytes, now_us: int) -> None:
        """Take the next bytes of the body, which came at `now_us`."""
        complete, _, self._open = (self._open + data).rpartition(b"\n\n")
        for found in _STAMPED.finditer(complete):
            sent_us = int(found[1])
            self.deltas.append(Delta(sent_us, now_us - sent_us))


class Streams:
    """Open streams: `begin` opens them, `end` waits for the last of them.

    Attributes:
        readers: one for each stream.
        open: how many have not ended.
        failures: streams that did not end well, by what was wrong: the status, `lost`, `late`.
    """

    def __init__(self, url: str, body: bytes, count: int) -> None:
        self.readers = [DeltaReader() for _ in range(count)]
        self.failures: Counter[str] = Counter()
        self._url = url
        self._request = request_bytes(url, body)
        self._connections: list[ClientConnection] = []
        self._begun: set[DeltaReader] = set()
        self.open = count
        self._all_begun = asyncio.Event()
        self._all_ended = asyncio.Event()

    async def begin(self, ramp_s: float, timeout_s: float) -> None:
        """Open all, within `ramp_s`; return once each has its first bytes or has ended, or when that takes too long."""
        self._connections = [await self._connected(reader) for reader in self.readers]
        for connection in self._connections:
            connection.send(self._request)
            await asyncio.sleep(ramp_s / len(self._connections))
        await _set_within(self._all_begun, timeout_s)

    async def end(self, timeout_s: float) -> None:
        """Return once all have ended; those that have not by then are cut off, and late."""
        if not await _set_within(self._all_ended, timeout_s):
            self.failures["late"] += self.open
        for connection in self._connections:
            connection.close()

    async def _connected(self, reader: DeltaReader) -> ClientConnection:
        def came(data: bytes) -> None:
            reader.feed(data, monotonic_ns() // 1000)
            self._has_begun(reader)

        def ended(_: ClientConnection, exchanged: Exchanged) -> None:
            if exchanged.status != 200:
                self.failures[str(exchanged.status) if exchanged.status else "lost"] += 1
            self._has_begun(reader)
            self.open -= 1
            if not self.open:
                self._all_ended.set()

        return await connect(self._url, ended, watch=came)

    def _has_begun(self, reader: DeltaReader) -> None:
        self._begun.add(reader)
        if len(self._begun) == len(self.readers):
            self._all_begun.set()


async def _set_within(event: asyncio.Event, timeout_s: float) -> bool:
    try:
        async with asyncio.timeout(timeout_s):
            await event.wait()
    except TimeoutError:
        return False
    return True
