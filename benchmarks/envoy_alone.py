"""Envoy with nothing in it but a router: what a gateway costs before it does anything.

Two listeners: one routes to the model server, with the timeouts that turns need; the other answers by itself, which is
as fast as a peer can be, so that the load generator can be measured alone.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import httpx

from attache_core.json_codec import Json, encode

ROUTED = "routed"
ANSWERED = "answered"
POLL_S = 0.02

_HTTP_TYPES = "type.googleapis.com/envoy.extensions.filters"


@dataclass(frozen=True, slots=True)
class DirectResponse:
    """What the second listener answers to everything, with status 200."""

    body: bytes


def bootstrap(model_url: str, admin: Path, answer: DirectResponse) -> bytes:
    """Envoy's configuration, as JSON; ports are the kernel's choice."""
    routed = {"match": {"prefix": "/"}, "route": {"cluster": "model", "timeout": "0s"}}
    answered = {
        "match": {"prefix": "/"},
        "direct_response": {"status": 200, "body": {"inline_string": answer.body.decode()}},
    }
    address = urlsplit(model_url)
    config = {
        "admin": {"address": {"pipe": {"path": str(admin)}}},
        "static_resources": {
            "listeners": [_listener(ROUTED, routed), _listener(ANSWERED, answered)],
            "clusters": [_cluster("model", str(address.hostname), address.port or 80)],
        },
    }
    return encode(config)


async def wait_for_listeners(admin: Path) -> tuple[str, str]:
    """The URLs of the two listeners, once they are open."""
    transport = httpx.AsyncHTTPTransport(uds=str(admin))
    async with httpx.AsyncClient(transport=transport, base_url="http://envoy") as client:
        while True:
            try:
                listeners = (await client.get("/listeners", params={"format": "json"})).json()
                urls = {entry["name"]: _url(entry) for entry in listeners.get("listener_statuses", [])}
                if (await client.get("/ready")).status_code == 200 and len(urls) == 2:
                    return urls[ROUTED], urls[ANSWERED]
            except httpx.TransportError:
                pass
            await asyncio.sleep(POLL_S)


def _url(entry: Json) -> str:
    address = entry["local_address"]["socket_address"]
    return f"http://{address['address']}:{address['port_value']}"


def _listener(name: str, route: Json) -> Json:
    manager = {
        "@type": f"{_HTTP_TYPES}.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": name,
        "route_config": {"virtual_hosts": [{"name": name, "domains": ["*"], "routes": [route]}]},
        "http_filters": [{"name": "router", "typed_config": {"@type": f"{_HTTP_TYPES}.http.router.v3.Router"}}],
    }
    return {
        "name": name,
        "address": {"socket_address": {"address": "127.0.0.1", "port_value": 0}},
        "filter_chains": [{"filters": [{"name": "http", "typed_config": manager}]}],
    }


def _cluster(name: str, host: str, port: int) -> Json:
    endpoint = {"endpoint": {"address": {"socket_address": {"address": host, "port_value": port}}}}
    return {
        "name": name,
        "connect_timeout": "5s",
        "type": "STATIC",
        "load_assignment": {"cluster_name": name, "endpoints": [{"lb_endpoints": [endpoint]}]},
    }
