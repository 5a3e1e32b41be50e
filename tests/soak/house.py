"""A gateway that is started again whenever it ends, as an operator's service manager does, and what can be killed."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import socket
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from attache_envoy.gateway import Gateway, parse_gateway
from attache_envoy.run.background import background
from attache_envoy.run.failure import GatewayFailed
from attache_envoy.run.supervisor import RunningGateway, running_gateway
from postgresql_server import PostgresqlServer
from soak.plan import Plan, Victim

READY_S = 60.0
POLL_S = 0.05
DOWN_S = 0.5
"""How long a server that was killed stays down."""

_GATEWAY = """
listen: 127.0.0.1:{port}
workers: {workers}
storage: {storage}
upstream: {model}
chains:
  responses:
    - {{filter: validate}}
    - {{filter: persist, conversation_lease_s: 2}}
    - {{filter: rehydrate}}
    - {{filter: tool_dispatch, loop: [{{filter: upstream_round}}]}}
"""


@dataclass
class House:
    """What runs, and how often what was killed.

    Attributes:
        url: the gateway's, the same after each start.
        postgresql: the store's server, if it has one.
    """

    url: str
    settings: Gateway
    postgresql: PostgresqlServer | None
    killed: Counter[str] = field(default_factory=Counter)
    running: RunningGateway | None = None
    up: asyncio.Event = field(default_factory=asyncio.Event)

    async def keep_running(self) -> None:
        """Run the gateway until cancelled, again and again."""
        while True:
            with suppress(GatewayFailed):
                async with running_gateway(self.settings) as self.running:
                    self.up.set()
                    await asyncio.Event().wait()
            self.up.clear()

    async def wait_until_ready(self) -> None:
        """Return when a turn would succeed."""
        async with asyncio.timeout(READY_S):
            await self.up.wait()
            assert self.running is not None
            await self.running.wait_until_ready()

    async def wait_until_idle(self) -> None:
        """Return when a turn would succeed and none is under way."""
        await self.wait_until_ready()
        assert self.running is not None
        async with asyncio.timeout(READY_S):
            while await self.running.admin.active_requests() or self._unattended():  # noqa: ASYNC110 - only ever asked
                await asyncio.sleep(POLL_S)

    def _unattended(self) -> bool:
        return self.running is not None and any(self.running.run_dir.glob("*.unattended"))

    async def kill(self, victim: Victim) -> None:
        """SIGKILL, as soon as the gateway is up."""
        await asyncio.wait_for(self.up.wait(), READY_S)
        assert self.running is not None
        self.killed[victim] += 1
        match victim:
            case "worker":
                os.kill(random.choice(self.running.workers.pids), signal.SIGKILL)
            case "envoy":
                self.up.clear()
                os.kill(self.running.envoy_pid, signal.SIGKILL)
            case "postgresql":
                assert self.postgresql is not None
                await asyncio.to_thread(self.postgresql.kill)
                await asyncio.sleep(DOWN_S)
                await asyncio.to_thread(self.postgresql.start)


@asynccontextmanager
async def open_house(
    plan: Plan, model_url: str, folder: Path, postgresql: PostgresqlServer | None
) -> AsyncIterator[House]:
    """A gateway on a new store, kept running while the block runs."""
    port = _free_port()
    storage = f"sqlite:///{folder}/attache.db" if postgresql is None else postgresql.new_database()
    text = _GATEWAY.format(
        port=port, workers=plan.workers, storage=storage, model=model_url, on_disconnect=plan.on_disconnect
    )
    house = House(f"http://127.0.0.1:{port}", parse_gateway(text, "soak.yaml"), postgresql)
    async with background(house.keep_running()):
        await house.wait_until_ready()
        yield house


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port
