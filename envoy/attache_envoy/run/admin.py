"""Envoy's admin endpoint, as far as we use it. It listens on a Unix socket in the run directory, never on a port.

Source: Envoy documentation, "Administration interface"; what `drain_listeners` really does was measured, see `drain`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx

TIMEOUT_S = 5.0


class AdminClient:
    """Asks one Envoy about itself. Every call may raise `httpx.TransportError`: Envoy is not up yet, or gone."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client

    async def is_live(self) -> bool:
        """Whether Envoy has opened its listeners and is not draining."""
        return (await self._client.get("/ready")).status_code == 200

    async def tcp_address(self) -> tuple[str, int]:
        """Host and real port of the one listener that is not a Unix socket."""
        answer = await self._get_json("/listeners", format="json")
        addresses = [status["local_address"] for status in answer["listener_statuses"]]
        [address] = [address["socket_address"] for address in addresses if "socket_address" in address]
        return address["address"], address["port_value"]

    async def stats(self, name_pattern: str) -> Mapping[str, int]:
        """Counters and gauges whose name matches a regular expression (RE2, unanchored)."""
        answer = await self._get_json("/stats", format="json", filter=name_pattern)
        return {stat["name"]: stat["value"] for stat in answer["stats"] if "name" in stat}

    async def clusters(self) -> str:
        """What Envoy knows of each endpoint of its clusters: a line of text for each fact."""
        return (await self._client.get("/clusters")).text

    async def config_dump(self) -> Mapping[str, Any]:
        """The configuration that Envoy runs with."""
        return await self._get_json("/config_dump")

    async def active_requests(self) -> int:
        """How many requests are being answered now, those of the loop listeners included."""
        stats = await self.stats(r"^http\..*\.downstream_rq_active$")
        return sum(count for name, count in stats.items() if name != "http.admin.downstream_rq_active")

    async def healthy_workers(self) -> tuple[int, int]:
        """How many workers Envoy finds healthy, and how many there are."""
        stats = await self.stats(r"^cluster\.workers\.membership_(healthy|total)$")
        return stats["cluster.workers.membership_healthy"], stats["cluster.workers.membership_total"]

    async def drain(self) -> None:
        """Stop taking work: new connections are refused, open ones end with the response that they are waiting for.

        Inbound listeners only. Without that restriction Envoy closes the loop listeners too, and with them every turn
        that still has a round before it; with `graceful` it goes on taking work for its drain time.
        """
        (await self._client.post("/drain_listeners", params="inboundonly")).raise_for_status()

    async def _get_json(self, path: str, **query: str) -> Mapping[str, Any]:
        answer = await self._client.get(path, params=query)
        answer.raise_for_status()
        decoded: Mapping[str, Any] = answer.json()
        return decoded


@asynccontextmanager
async def open_admin(socket: Path) -> AsyncIterator[AdminClient]:
    """A client for the admin endpoint at that Unix socket, which need not exist yet."""
    transport = httpx.AsyncHTTPTransport(uds=str(socket))
    async with httpx.AsyncClient(transport=transport, base_url="http://envoy-admin", timeout=TIMEOUT_S) as client:
        yield AdminClient(client)
