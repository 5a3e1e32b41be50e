"""Host names: one spelling for each, and which names a list of patterns admits. Pure.

A pattern is a host name, or `*.` and one: `*.example.com` is every name below `example.com`, not that name itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_LABEL = r"[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?"
_NAME = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")
_IPV6 = re.compile(r"[0-9a-f:.]*:[0-9a-f:.]*")
_MAX_CHARS = 253


def plain_host(host: str) -> str:
    """A host as it is compared: in ASCII (other letters as `xn--`) and lower case, without the dot that may end it.

    Raises:
        ValueError: it is no host name and no numeric address (of IPv6 without brackets and zone).
    """
    plain = _ascii(host).lower().removesuffix(".")
    if len(plain) > _MAX_CHARS or not (_NAME.fullmatch(plain) or _IPV6.fullmatch(plain)):
        raise ValueError("not a host name")
    return plain


def _ascii(host: str) -> str:
    """As the client of HTTP would write it, so that nobody is asked under another name than the one that was judged."""
    if host.isascii():
        return host
    import httpx2  # noqa: PLC0415 - who only reads settings need not wait for it to load

    try:
        return httpx2.URL(scheme="http", host=host).raw_host.decode("ascii")
    except (httpx2.InvalidURL, UnicodeError):
        raise ValueError("not a host name") from None


def host_pattern(text: str) -> str:
    """A pattern in its one spelling.

    Raises:
        ValueError: it is no host name and no `*.` with one.
    """
    wildcard, name = ("*.", text[2:]) if text.startswith("*.") else ("", text)
    try:
        return wildcard + plain_host(name)
    except ValueError:
        raise ValueError(f"{text!r} is no host name, such as `example.com`, and no `*.example.com`.") from None


def is_admitted(host: str, patterns: Iterable[str]) -> bool:
    """Whether one of the patterns (as `host_pattern` gives them) means this host (as `plain_host` gives it)."""
    return any(host.endswith(pattern[1:]) if pattern.startswith("*.") else host == pattern for pattern in patterns)
