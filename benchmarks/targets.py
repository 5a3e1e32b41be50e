"""What is measured: the model server itself, Envoy with nothing but a router, Attaché, agentic-api.

Attaché is measured fused, split, and fused with a bypass for stateless turns. Each target is a process of its own,
started fresh, and gone when the block ends; `running_target` gives its URL and the process whose tree is its cost. All
stand before one model server.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import tempfile
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from attache_envoy.run.envoy_binary import find_envoy
from benchmarks.envoy_alone import DirectResponse, bootstrap, wait_for_listeners

TargetName = Literal["direct", "envoy", "bypass", "fused", "split", "agentic"]
TARGETS: tuple[TargetName, ...] = get_args(TargetName)

GATEWAYS: tuple[TargetName, ...] = ("fused", "split", "agentic")
"""Those that store turns and run tools."""

PEERS = Path(__file__).parent / ".venv" / "bin"
"""What `make bench` installs from `benchmarks/requirements.lock`."""

AGENTIC_SERVER = PEERS / "agentic-server"
"""The Rust gateway's binary."""

BYPASSING = """\
upstreams:
  default: {{url: "{url}", dialect: openai}}
routes:
  - match: {{path: /v1/responses, methods: [POST]}}
    chain: responses
    bypass: stateless
"""
"""The gateway file whose stateless turns Envoy passes on by itself."""

POLL_S = 0.02
MAX_REASON_BYTES = 500
START_S = 120.0
STOP_S = 15.0


class TargetStartError(RuntimeError):
    """A target that is not there, or ended before it could be asked; the message says why."""


@dataclass(frozen=True, slots=True)
class Target:
    """A server under load.

    Attributes:
        pid: the root of its process tree; of `direct`, the model server's.
        database: the SQLite file in which it keeps state.
    """

    name: TargetName
    url: str
    pid: int
    database: Path | None = None

    @property
    def keeps_state(self) -> bool:
        """Whether it stores turns and runs tools."""
        return self.name in GATEWAYS

    @property
    def differs_in_loads_only(self) -> bool:
        """Whether all else of it is measured already: a bypass is of no matter but to stateless turns."""
        return self.name == "bypass"


@dataclass(frozen=True, slots=True)
class Sizes:
    """How many threads and processes the measured servers get; None: as many as they take if they are not told.

    agentic-api takes a thread for each core and cannot be told otherwise.
    """

    envoy_threads: int | None = None
    workers: int | None = None

    @property
    def envoy_options(self) -> tuple[str, ...]:
        """For an Envoy, and for the runner that starts one: without, it takes a thread for each core."""
        return () if self.envoy_threads is None else ("--concurrency", str(self.envoy_threads))

    @property
    def worker_options(self) -> tuple[str, ...]:
        """For the runner of workers."""
        return () if self.workers is None else ("--workers", str(self.workers))


@asynccontextmanager
async def running_target(name: TargetName, model: Target, sizes: Sizes) -> AsyncIterator[Target]:
    """Start a target before `model`; TargetStartError when it does not."""
    if name == "direct":
        yield model
        return
    with tempfile.TemporaryDirectory(prefix="attache-bench-") as folder:
        database = Path(folder) / "bench.db"
        if name == "envoy":
            async with running_envoy(model.url, Path(folder), sizes) as (pid, url, _):
                yield Target(name, url, pid)
            return
        if name == "agentic":
            async with _running_agentic(model.url, database) as (pid, url):
                yield Target(name, url, pid, database)
            return
        command = _attache(name, model.url, Path(folder), database, sizes)
        async with _running(command, "ready ") as (process, url):
            yield Target(name, url, process.pid, database)


@asynccontextmanager
async def running_model() -> AsyncIterator[Target]:
    """The model server with canned answers."""
    command = (sys.executable, "-m", "attache_core.testing.model_server", "--port", "0", "--bench")
    async with _running(command, "listening ") as (process, url):
        yield Target("direct", url, process.pid)


@asynccontextmanager
async def running_mcp_server() -> AsyncIterator[str]:
    """The MCP server of the demo; yields its URL."""
    command = (sys.executable, "-m", "attache_core.testing.mcp_server", "--port", "0")
    async with _running(command, "listening ") as (_, url):
        yield url


@asynccontextmanager
async def running_envoy(model_url: str, folder: Path, sizes: Sizes) -> AsyncIterator[tuple[int, str, str]]:
    """Envoy alone; yields its process id, the URL that routes to the model server and the one it answers itself."""
    admin = folder / "admin.sock"
    config = folder / "envoy.json"
    config.write_bytes(bootstrap(model_url, admin, DirectResponse(b'{"object":"response"}')))
    command = (
        *(str(find_envoy()), "--config-path", str(config), *sizes.envoy_options),
        *("--log-level", "error", "--disable-hot-restart"),
    )
    process = await asyncio.create_subprocess_exec(*command, stdin=DEVNULL, stdout=DEVNULL)
    try:
        async with _in_time(command[0]):
            routed, answered = await wait_for_listeners(admin)
        yield process.pid, routed, answered
    finally:
        await _stop(process)


def _attache(name: TargetName, model_url: str, folder: Path, database: Path, sizes: Sizes) -> tuple[str, ...]:
    gateway = folder / "gateway.yaml"
    gateway.write_text(BYPASSING.format(url=model_url) if name == "bypass" else f"upstream: {model_url}\n")
    return (
        *(str(Path(sys.executable).parent / "attache"), "up", str(gateway), "--listen", "127.0.0.1:0"),
        *("--placement", "split" if name == "split" else "fused", "--storage", f"sqlite:///{database}"),
        *(*sizes.worker_options, *sizes.envoy_options),
    )


@asynccontextmanager
async def _running_agentic(model_url: str, database: Path) -> AsyncIterator[tuple[int, str]]:
    """agentic-api as it comes, but for what it needs to reach servers on this machine."""
    if not AGENTIC_SERVER.exists():
        raise TargetStartError(
            f"{AGENTIC_SERVER} is not installed: run `make bench`, or leave agentic out of --targets."
        )
    port = _free_port()
    command = (
        *(str(AGENTIC_SERVER), "--llm-api-base", model_url, "--skip-llm-ready-check"),
        *("--gateway-host", "127.0.0.1", "--gateway-port", str(port)),
        *("--db-url", f"sqlite://{database}?mode=rwc"),
    )
    settings = {"AGENTIC_API_HOME": str(database.parent), "AGENTIC_MCP_ALLOWED_HOSTS": "127.0.0.1"}
    process = await asyncio.create_subprocess_exec(
        *command, stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL, env={**_environment(), **settings}
    )
    try:
        async with _in_time(command[0]):
            await _accepts(port)
        yield process.pid, f"http://127.0.0.1:{port}"
    finally:
        await _stop(process)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port


async def _accepts(port: int) -> None:
    while True:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(POLL_S)
            continue
        writer.close()
        return


@asynccontextmanager
async def _running(command: Sequence[str], announcement: str) -> AsyncIterator[tuple[Process, str]]:
    """A process that prints `announcement` and its URL when it can be used."""
    with tempfile.TemporaryFile() as log:
        process = await asyncio.create_subprocess_exec(
            *command, stdin=DEVNULL, stdout=PIPE, stderr=log, env=_environment()
        )
        assert process.stdout is not None
        try:
            async with _in_time(command[0]):
                line = (await process.stdout.readline()).decode()
            if not line.startswith(announcement):
                log.seek(0)
                raise TargetStartError(_tail(line.encode() + log.read()))
            yield process, line.removeprefix(announcement).strip()
        finally:
            await _stop(process)


@asynccontextmanager
async def _in_time(command: str) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(START_S):
            yield
    except TimeoutError as error:
        raise TargetStartError(f"{command} was not there after {START_S:.0f} s") from error


def _tail(log: bytes) -> str:
    return " ".join(log[-MAX_REASON_BYTES:].decode(errors="replace").split())


def _environment() -> dict[str, str]:
    """Ours, without a proxy that could stand between processes of this machine."""
    return {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}


async def _stop(process: Process) -> None:
    if process.returncode is None:
        process.send_signal(signal.SIGTERM)
    try:
        async with asyncio.timeout(STOP_S):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()
