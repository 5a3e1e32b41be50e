"""What lets stateless requests past a chain: a script that recognises them, and the metadata that it leaves.

Envoy asks the script before the chain's first hosted filter, once the request has been authenticated. Where it
recognises a request that the chain would only pass on, it says so in metadata and lets Envoy choose the route again.
Invariant: the metadata can come from nowhere else, for no client can set any.
Source: Envoy's Lua filter; the grammar of JSON in RFC 8259.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from envoy_data_plane.envoy.extensions.filters.http.lua.v3 import Lua
from envoy_data_plane.envoy.extensions.filters.network.http_connection_manager.v3 import HttpFilter
from envoy_data_plane.envoy.type.matcher.v3 import MetadataMatcher, MetadataMatcherPathSegment, ValueMatcher

from attache_core import json_codec
from attache_core.types.request import LOOKED_AT, MAX_INPUT_ITEMS
from attache_core.types.tools import MAX_TOOLS
from attache_envoy.compile.messages import packed, text
from attache_envoy.compile.plan import PlannedChain
from attache_envoy.gateway.model import Gateway
from attache_filters.extproc.headers import VERIFIED_TENANT

METADATA = "attache.bypass"
_KEY = "stateless"


def bypass_filter_name(chain: PlannedChain) -> str:
    """The script of a chain, in Envoy's filter chain and in the routes that switch it on."""
    return f"attache.bypass/{chain.source}"


def bypass_filter(gateway: Gateway, chain: PlannedChain) -> HttpFilter:
    """The script of a chain, switched off until a route switches it on."""
    script = Lua(default_source_code=text(f"{_bounds(gateway, chain)}\n{_source()}"))
    return HttpFilter(name=bypass_filter_name(chain), typed_config=packed(script), disabled=True)


def is_stateless() -> MetadataMatcher:
    """Matches the requests that a script has recognised."""
    return MetadataMatcher(
        filter=METADATA, path=[MetadataMatcherPathSegment(key=_KEY)], value=ValueMatcher(bool_match=True)
    )


def _bounds(gateway: Gateway, chain: PlannedChain) -> str:
    """What is the gateway's to say, as the assignments that the script begins with."""
    limits = gateway.limits
    numbers = {
        "MAX_BODY_BYTES": min(limits.max_bypass_bytes, limits.max_request_bytes, limits.connection_buffer_bytes),
        "MAX_INPUT_ITEMS": min((MAX_INPUT_ITEMS, *chain.settings_of("max_input_items"))),
        "MAX_TOOLS": min(MAX_TOOLS, gateway.mcp.max_tools_per_request),
    }
    looked_at = ", ".join(f'["{name}"] = true' for name in sorted(LOOKED_AT))
    lines = [f"local {name} = {value}" for name, value in numbers.items()]
    texts = {"METADATA": METADATA, "TENANT_HEADER": VERIFIED_TENANT}
    lines += [f"local {name} = {json_codec.encode(value).decode()}" for name, value in texts.items()]
    return "\n".join([*lines, f"local LOOKED_AT = {{ {looked_at} }}"])


@cache
def _source() -> str:
    return files("attache_envoy.compile").joinpath("stateless.lua").read_text(encoding="utf-8")
