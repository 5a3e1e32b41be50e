"""A client of HTTP/1.1 for the hot path: connections that stay open to one server, and nothing else.

Two kinds of requests are made again and again within one turn, each to a server that the gateway keeps a connection to:
rounds through a loop listener and calls of MCP tools. A general client costs a millisecond of CPU for each, most of
which is what it could do but is not asked to: redirects, cookies, proxies, decoding, parsing in Python.
"""

from __future__ import annotations

from attache_core.http1.connection import BrokenOffError, Http1Body, Http1Connection, Http1Response
from attache_core.http1.pool import Dial, Http1Pool
from attache_core.http1.request import Http1Request

__all__ = ["BrokenOffError", "Dial", "Http1Body", "Http1Connection", "Http1Pool", "Http1Request", "Http1Response"]
