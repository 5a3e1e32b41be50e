"""The gateway file: its model, its defaults, its checks."""

from attache_envoy.gateway.load import default_gateway, load_gateway, parse_gateway, with_options
from attache_envoy.gateway.model import Gateway

__all__ = ["Gateway", "load_gateway", "parse_gateway", "default_gateway", "with_options"]
