"""One connection that carries one turn after another and reads each answer."""

from __future__ import annotations

import asyncio

from attache_core.json_codec import Json, decode, encode
from benchmarks.exchange import ClientConnection, Exchanged, connect, request_bytes

TURN_S = 30.0
"""How long one may take."""


class Turns:
    """One connection that carries one turn after another and reads each answer."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._answers: asyncio.Queue[Exchanged] = asyncio.Queue()
        self._connection: ClientConnection | None = None

    async def ask(self, body: Json, path: str = "/v1/responses") -> tuple[Exchanged, Json]:
        """One turn, or what another path creates: how it went, and the object, or `{}` when it failed."""
        if self._connection is None:
            self._connection = await connect(self._url, self._answered, keep_body=True)
        self._connection.send(request_bytes(self._url, encode(body), path))
        async with asyncio.timeout(TURN_S):
            exchanged = await self._answers.get()
        return exchanged, decode(exchanged.body) if exchanged.status == 200 else {}

    def close(self) -> None:
        """Disconnect."""
        if self._connection is not None:
            self._connection.close()

    def _answered(self, connection: ClientConnection, exchanged: Exchanged) -> None:
        del connection
        self._answers.put_nowait(exchanged)
