"""A real Envoy for one compiled gateway, the inference server behind it, and workers that do what a test says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import grpc
import httpx
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from attache_core import json_codec
from attache_envoy.compile.bootstrap import compile_bootstrap
from attache_envoy.compile.plan import plan
from attache_envoy.compile.sockets import Sockets
from attache_envoy.gateway import Gateway
from attache_envoy.run.envoy_binary import find_envoy
from attache_filters.extproc.headers import SEGMENT_METADATA_KEY
from attache_filters.extproc.wire.ext_proc_pb2 import ProcessingRequest, ProcessingResponse
from gateway_fakes import FILTERS

ENVOY = find_envoy()
WAIT_S = 5.0
_ANSWER = b"HTTP/1.1 200 OK\r\ncontent-type: text/x\r\nx-attache-leak: 1\r\ncontent-length: 2\r\n\r\n{}"


@dataclass
class RecordingUpstream:
    """An inference server that answers everything with 200 and `{}`, and remembers the heads of requests."""

    port: int = 0
    heads: list[list[str]] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def header(self, name: str) -> list[str]:
        """The values of a header of the last request."""
        pairs = (line.split(": ", 1) for line in self.heads[-1][1:])
        return [value for key, value in pairs if key == name]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                self.heads.append(head.strip().split("\r\n"))
                await self._skip_body(reader, head.lower())
                writer.write(_ANSWER)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def _skip_body(self, reader: asyncio.StreamReader, head: str) -> None:
        if "content-length: " in head:
            await reader.readexactly(int(head.split("content-length: ")[1].split("\r\n", maxsplit=1)[0]))
        elif "transfer-encoding: chunked" in head:
            await reader.readuntil(b"0\r\n\r\n")


@asynccontextmanager
async def recording_upstream() -> AsyncIterator[RecordingUpstream]:
    upstream = RecordingUpstream()
    async with await asyncio.start_server(upstream.serve, "127.0.0.1", 0) as server:
        upstream.port = server.sockets[0].getsockname()[1]
        yield upstream
        server.close()


Behaviour = Callable[[ProcessingRequest], ProcessingResponse | None]


@dataclass
class FakeWorker:
    """An ext_proc service; `behave` answers each message, or not, and `segments` says which streams began."""

    behave: Behaviour = lambda _: None
    segments: list[str] = field(default_factory=list)

    async def process(
        self, requests: AsyncIterator[ProcessingRequest], context: grpc.aio.ServicerContext[object, object]
    ) -> AsyncIterator[ProcessingResponse]:
        metadata = {str(key): value for key, value in context.invocation_metadata() or ()}
        self.segments.append(str(metadata.get(SEGMENT_METADATA_KEY)))
        async for request in requests:
            answer = self.behave(request)
            if answer is not None:
                yield answer


@asynccontextmanager
async def running_worker(path: Path, worker: FakeWorker) -> AsyncIterator[grpc.aio.Server]:
    server = grpc.aio.server()
    method = grpc.stream_stream_rpc_method_handler(
        worker.process,
        request_deserializer=ProcessingRequest.FromString,
        response_serializer=ProcessingResponse.SerializeToString,
    )
    service = "envoy.service.ext_proc.v3.ExternalProcessor"
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, {"Process": method}),))
    servicer = health.aio.HealthServicer()
    await servicer.set("", health_pb2.HealthCheckResponse.SERVING)
    health_pb2_grpc.add_HealthServicer_to_server(servicer, server)
    server.add_insecure_port(f"unix:{path}")
    await server.start()
    try:
        yield server
    finally:
        await server.stop(None)


@dataclass(frozen=True)
class RunningEnvoy:
    """An Envoy that accepts connections.

    Attributes:
        client: speaks to the gateway listener.
        admin: speaks to the admin endpoint.
    """

    sockets: Sockets
    port: int
    client: httpx.AsyncClient
    admin: httpx.AsyncClient

    @asynccontextmanager
    async def loop_client(self, segment: str) -> AsyncIterator[httpx.AsyncClient]:
        """Speaks to the loop listener of a segment."""
        async with unix_client(self.sockets.loop(segment)) as client:
            yield client

    async def until_healthy_workers(self, count: int) -> None:
        async with asyncio.timeout(WAIT_S):
            while await self._healthy_workers() != count:  # noqa: ASYNC110 - Envoy can be asked, it does not tell
                await asyncio.sleep(0.02)

    async def _healthy_workers(self) -> int:
        lines = (await self.admin.get("/clusters")).text.splitlines()
        return sum(line.startswith("workers::") and line.endswith("health_flags::healthy") for line in lines)


def unix_client(path: Path) -> httpx.AsyncClient:
    transport = httpx.AsyncHTTPTransport(uds=str(path))
    return httpx.AsyncClient(transport=transport, base_url="http://gateway", timeout=WAIT_S)


def bootstrap_file(gateway: Gateway, sockets: Sockets) -> Path:
    """The compiled gateway as a file that Envoy reads."""
    path = sockets.run_dir / "bootstrap.json"
    bootstrap = compile_bootstrap(gateway, plan(gateway, filters=FILTERS), sockets)
    path.write_bytes(json_codec.encode(bootstrap))
    return path


@asynccontextmanager
async def running_envoy(gateway: Gateway, run_dir: Path) -> AsyncIterator[RunningEnvoy]:
    """Start Envoy for a gateway whose `listen` has port 0, and stop it."""
    sockets = Sockets(run_dir)
    config = await asyncio.to_thread(bootstrap_file, gateway, sockets)
    process = await asyncio.create_subprocess_exec(
        *(str(ENVOY), "-c", str(config), "--concurrency", "1", "--disable-hot-restart", "--log-level", "error")
    )
    try:
        async with unix_client(sockets.admin) as admin:
            port = await _port(admin, process)
            async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=WAIT_S) as client:
                yield RunningEnvoy(sockets, port, client, admin)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def _port(admin: httpx.AsyncClient, process: asyncio.subprocess.Process) -> int:
    async with asyncio.timeout(WAIT_S):
        while process.returncode is None:
            try:
                if (await admin.get("/ready")).status_code == 200:
                    break
            except httpx.TransportError:
                pass
            await asyncio.sleep(0.02)
        statuses = (await admin.get("/listeners?format=json")).json()["listener_statuses"]
    addresses = {status["name"]: status["local_address"] for status in statuses}
    return int(addresses["gateway"]["socket_address"]["port_value"])
