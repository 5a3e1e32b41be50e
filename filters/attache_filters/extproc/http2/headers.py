"""Header lists: their compression, and the rules that a request keeps. Source: RFC 7541; RFC 9113, sections 4.3 and 8.

Our own blocks use no dynamic table: each field is a literal, or stands in the static table. So a block depends on
nothing but its fields, and is made once for all connections; a server of gRPC has few.

A peer's block depends on the dynamic table. As long as no block changes the table, the same bytes mean the same fields
(decoding reads nothing else): blocks that left the table alone are kept, and forgotten as soon as one changes it.
Envoy's requests differ in nothing but what is in the table from the first of them on.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from hpack import Decoder, Encoder, HPACKError, OversizedHeaderListError
from hpack.table import HeaderTable

from attache_filters.extproc.http2.errors import ConnectionViolationError, ErrorCode
from attache_filters.extproc.http2.events import HeaderList

_MAX_KEPT_BLOCKS = 64
_MAX_ENCODED_BLOCKS = 256
_MAX_LENGTH_DIGITS = 18
_SIZE_UPDATES = [bytes([first]) for first in range(0x20, 0x40)]

NO_DYNAMIC_TABLE = b"\x20"
"""Before the first block of a connection: its encoder uses no table, whatever the peer allows (RFC 7541, 6.3)."""

_PSEUDO_NAMES = frozenset((b":method", b":scheme", b":authority", b":path"))
_REQUIRED = frozenset((b":method", b":scheme", b":path"))
_HOP_BY_HOP = frozenset((b"connection", b"proxy-connection", b"keep-alive", b"transfer-encoding", b"upgrade"))
_NAME = re.compile(rb"[!-9;-@\[-~]+")
_VALUE = re.compile(rb"(?![ \t])[^\0\r\n]*(?<![ \t])")


@lru_cache(maxsize=_MAX_ENCODED_BLOCKS)
def encode(headers: HeaderList) -> bytes:
    """The block of `headers`, which leaves the peer's table alone."""
    return Encoder().encode([(name, value, True) for name, value in headers])


@dataclass(frozen=True, slots=True)
class FieldBlock:
    """A decoded header list.

    Attributes:
        is_request: whether it keeps the rules of a request's header section.
        is_trailers: whether it keeps the rules of a trailer section.
        content_length: what the request says of its body; None if it says nothing.
    """

    headers: HeaderList
    is_request: bool
    is_trailers: bool
    content_length: int | None


class HeaderDecoder:
    """Decodes the blocks of one connection, each once and in their order."""

    def __init__(self, max_header_list_bytes: int) -> None:
        self._decoder = Decoder(max_header_list_size=max_header_list_bytes)
        self._table = self._decoder.header_table = _WatchedTable()
        self._kept: dict[bytes, FieldBlock] = {}

    def decode(self, block: bytes) -> FieldBlock:
        """The fields of a block. One that cannot be decoded, or is too long, ends the connection: the table is lost."""
        kept = self._kept.get(block)
        if kept is not None:
            return kept
        # The other way to change the table, a new size, stands at the beginning of a block or nowhere.
        self._table.changed = block[:1] in _SIZE_UPDATES
        decoded = _checked(self._fields(block))
        if self._table.changed or len(self._kept) >= _MAX_KEPT_BLOCKS:
            self._kept.clear()
        if not self._table.changed:
            self._kept[block] = decoded
        return decoded

    def _fields(self, block: bytes) -> HeaderList:
        try:
            return tuple((name, value) for name, value in self._decoder.decode(block, raw=True))
        except OversizedHeaderListError as error:
            raise ConnectionViolationError(ErrorCode.ENHANCE_YOUR_CALM, "a header list is too long") from error
        except HPACKError as error:
            raise ConnectionViolationError(ErrorCode.COMPRESSION_ERROR, "a header block cannot be decoded") from error


class _WatchedTable(HeaderTable):
    """A dynamic table that knows whether a field was added."""

    changed = False

    def add(self, name: bytes, value: bytes) -> None:
        self.changed = True
        super().add(name, value)


def _checked(headers: HeaderList) -> FieldBlock:
    lengths = {value for name, value in headers if name == b"content-length"}
    length = lengths.pop() if len(lengths) == 1 else None
    sound = all(map(_is_sound, headers)) and not lengths and (length is None or _is_length(length))
    pseudo = [name for name, _ in headers if name.startswith(b":")]
    return FieldBlock(
        headers,
        is_request=sound and _are_request_pseudo_headers(pseudo, headers),
        is_trailers=sound and not pseudo,
        content_length=int(length) if sound and length is not None else None,
    )


def _is_length(value: bytes) -> bool:
    return value.isdigit() and len(value) <= _MAX_LENGTH_DIGITS


def _is_sound(field: tuple[bytes, bytes]) -> bool:
    """Whether a field may be in any message (8.2); which pseudo-header fields may is asked of the whole list."""
    name, value = field
    if name in _HOP_BY_HOP or (name == b"te" and value != b"trailers"):
        return False
    bare = name[1:] if name in _PSEUDO_NAMES else name
    return _NAME.fullmatch(bare) is not None and _VALUE.fullmatch(value) is not None


def _are_request_pseudo_headers(pseudo: list[bytes], headers: HeaderList) -> bool:
    """Whether those of a request are there, once each, before all other fields (8.3). CONNECT is not served."""
    return (
        _REQUIRED <= set(pseudo) <= _PSEUDO_NAMES
        and len(set(pseudo)) == len(pseudo)
        and all(name.startswith(b":") for name, _ in headers[: len(pseudo)])
        and (b":path", b"") not in headers
    )
