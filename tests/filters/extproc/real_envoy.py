"""A real Envoy for the tests of the ext_proc host: one process, Unix sockets only, listeners named after their chain.

The bootstrap is written by hand and minimal: this is what the host relies on, not what the product deploys. Processor
and upstream sockets may come and go; Envoy connects to them per request, so that one Envoy serves many tests.
"""

from __future__ import annotations

import json
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import httpx

from attache_envoy.compile.envoy_version import EnvoyVersion, parse_version
from attache_envoy.run.envoy_binary import find_envoy, read_version
from attache_filters.extproc.transport.choice import Transport

START_TIMEOUT_S = 5.0
POLL_S = 0.02
EXT_PROC = "type.googleapis.com/envoy.extensions.filters.http.ext_proc.v3.ExternalProcessor"
ROUTER = "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"
CONNECTION_MANAGER = (
    "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"
)
HTTP_OPTIONS = "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions"


@dataclass(frozen=True, slots=True)
class RealEnvoy:
    """A running Envoy and where everything listens; and which transport the ext_proc server is to have."""

    folder: Path
    transport: Transport = "lean"

    @property
    def processor(self) -> Path:
        """Where the ext_proc server must listen."""
        return self.folder / "proc"

    @property
    def upstream(self) -> Path:
        """Where the upstream must listen."""
        return self.folder / "up"

    def listener(self, name: str) -> Path:
        """Where the listener of that name listens."""
        return self.folder / name

    def stat(self, name: str) -> int:
        """One counter or gauge, over the admin socket; 0 when it does not exist."""
        with httpx.Client(transport=httpx.HTTPTransport(uds=str(self.folder / "admin"))) as admin:
            lines = admin.get("http://envoy/stats", params={"filter": f"^{name}$"}).text.splitlines()
        return int(lines[0].rpartition(": ")[2]) if lines else 0


@cache
def may_keep_content_length() -> bool:
    """Whether this Envoy can leave us the `content-length`; it then does."""
    return parse_version(read_version(find_envoy())) >= EnvoyVersion(1, 39, 0)


@contextmanager
def running_envoy(chains: Mapping[str, Sequence[str]]) -> Iterator[RealEnvoy]:
    """Envoy with one listener per entry of `chains`: the names of its segments, top to bottom; then the router."""
    with tempfile.TemporaryDirectory(prefix="at-") as name:
        folder = Path(name)
        config = folder / "envoy.json"
        config.write_text(json.dumps(_bootstrap(folder, chains)))
        log = (folder / "log").open("wb")
        arguments = ["-c", str(config), "--concurrency", "1", "--log-level", "warning", "--disable-hot-restart"]
        process = subprocess.Popen([find_envoy(), *arguments], stdout=log, stderr=log)
        try:
            _wait_until_ready(folder, process)
            yield RealEnvoy(folder)
        finally:
            process.terminate()
            process.wait(5)
            log.close()


def _wait_until_ready(folder: Path, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while not _is_live(folder / "admin"):
        assert process.poll() is None, (folder / "log").read_text()
        assert time.monotonic() < deadline, (folder / "log").read_text()
        with suppress(subprocess.TimeoutExpired):
            process.wait(POLL_S)


def _is_live(admin: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(START_TIMEOUT_S)
        if probe.connect_ex(str(admin)) != 0:
            return False
        probe.sendall(b"GET /ready HTTP/1.1\r\nhost: admin\r\nconnection: close\r\n\r\n")
        return b" 200 OK" in probe.recv(1000)


def _bootstrap(folder: Path, chains: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    return {
        "admin": {"address": _pipe(folder / "admin")},
        "static_resources": {
            "listeners": [_listener(folder, name, segments) for name, segments in chains.items()],
            "clusters": [
                _cluster("upstream", folder / "up", _http1()),
                _cluster("processor", folder / "proc", _http2()),
            ],
        },
    }


def _listener(folder: Path, name: str, segments: Sequence[str]) -> dict[str, Any]:
    route = {"match": {"prefix": "/"}, "route": {"cluster": "upstream", "timeout": "0s"}}
    manager = {
        "@type": CONNECTION_MANAGER,
        "stat_prefix": name,
        "route_config": {"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [route]}]},
        "http_filters": [*(_ext_proc(segment) for segment in segments), _router()],
        "stream_idle_timeout": "0s",
        "http_protocol_options": {"enable_trailers": True},
    }
    chain = {"filters": [{"name": "http", "typed_config": manager}]}
    return {"name": name, "address": _pipe(folder / name), "filter_chains": [chain]}


def _ext_proc(segment: str) -> dict[str, Any]:
    config = {
        "@type": EXT_PROC,
        "grpc_service": {
            "envoy_grpc": {"cluster_name": "processor"},
            "initial_metadata": [{"key": "x-attache-segment", "value": segment}],
        },
        "processing_mode": {
            "request_header_mode": "SEND",
            "response_header_mode": "SEND",
            "request_body_mode": "FULL_DUPLEX_STREAMED",
            "response_body_mode": "FULL_DUPLEX_STREAMED",
            "request_trailer_mode": "SEND",
            "response_trailer_mode": "SEND",
        },
        "message_timeout": "1s",
        **({"allow_content_length_header": True} if may_keep_content_length() else {}),
    }
    return {"name": f"envoy.filters.http.ext_proc/{segment}", "typed_config": config}


def _router() -> dict[str, Any]:
    return {"name": "envoy.filters.http.router", "typed_config": {"@type": ROUTER}}


def _cluster(name: str, path: Path, extra: dict[str, Any]) -> dict[str, Any]:
    endpoint = {"endpoint": {"address": _pipe(path)}}
    return {
        "name": name,
        "type": "STATIC",
        "connect_timeout": "2s",
        "load_assignment": {"cluster_name": name, "endpoints": [{"lb_endpoints": [endpoint]}]},
        **extra,
    }


def _http1() -> dict[str, Any]:
    return _speaking({"http_protocol_options": {"enable_trailers": True}})


def _http2() -> dict[str, Any]:
    return _speaking({"http2_protocol_options": {}})


def _speaking(protocol: dict[str, Any]) -> dict[str, Any]:
    options = {"@type": HTTP_OPTIONS, "explicit_http_config": protocol}
    return {"typed_extension_protocol_options": {"envoy.extensions.upstreams.http.v3.HttpProtocolOptions": options}}


def _pipe(path: Path) -> dict[str, Any]:
    return {"pipe": {"path": str(path)}}
