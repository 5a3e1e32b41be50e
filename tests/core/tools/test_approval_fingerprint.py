"""What an approval is bound to, and what its fingerprint tells."""

from __future__ import annotations

from attache_core.tools.approval_fingerprint import fingerprint, new_salt, stretched
from attache_core.tools.mcp.server import Credentials, McpServer

SALT = b"\0" * 16


def key(url: str = "https://h/mcp", token: str | None = "1234", headers: dict[str, str] | None = None) -> bytes:
    return stretched(McpServer(url, Credentials(headers, token)).key, SALT)


def test_fingerprint_is_the_same_for_the_same_call_only() -> None:
    one = fingerprint(key(), "s", "f", '{"a": 1}')
    assert fingerprint(key(), "s", "f", '{"a": 1}') == one
    others = {
        fingerprint(key("https://h/other"), "s", "f", '{"a": 1}'),
        fingerprint(key(token="1235"), "s", "f", '{"a": 1}'),
        fingerprint(key(token=None), "s", "f", '{"a": 1}'),
        fingerprint(key(headers={"x-team": "blue"}), "s", "f", '{"a": 1}'),
        fingerprint(key(), "t", "f", '{"a": 1}'),
        fingerprint(key(), "s", "g", '{"a": 1}'),
        fingerprint(key(), "s", "f", '{"a": 2}'),
        fingerprint(key(), "sf", "", '{"a": 1}'),
    }
    assert len(others) == 8
    assert one not in others


def test_fingerprint_tells_neither_that_two_calls_are_the_same_nor_what_they_hold() -> None:
    salts = [new_salt(), new_salt()]
    one, other = (fingerprint(stretched("https://h/mcp token", salt), "s", "f", "{}") for salt in salts)
    assert one != other
    assert (len(one), len({len(salt) for salt in salts})) == (64, 1)
