"""Decodes the content coding of request bodies (RFC 9110, section 8.4), with a bound on what comes out.

Knows gzip (RFC 1952), zlib (`deflate`) and zstd (RFC 8878); is unaware of what is inside. Invariants: no more than
`max_bytes` and one are ever decoded, whatever the body claims; a body that is cut off, or followed by something else,
is refused. A body may consist of several members (gzip) or frames (zstd).
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from typing import Protocol

import zstandard

from attache_core.errors import ClientError

SUPPORTED = ("gzip", "deflate", "zstd", "identity")

MAX_MEMBERS = 256
"""Members of one body; empty ones would cost time and yield nothing."""

MAX_ZSTD_WINDOW_BYTES = 8 << 20
"""What a zstd frame may ask its decoder to keep (RFC 9659)."""

_WINDOW_OF_GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS


def decode_body(body: bytes, coding: str, max_bytes: int) -> bytes:
    """`body` without its content coding.

    Args:
        coding: the value of `content-encoding`; empty means identity.

    Raises:
        ClientError: 415 for another coding, 400 when the body does not follow it, 413 beyond `max_bytes`.
    """
    name = coding.strip().lower()
    if name in ("", "identity"):
        return body
    decoder = _DECODERS.get(name)
    if decoder is None:
        message = f"The content encoding {name!r} is not supported: send the body as one of {', '.join(SUPPORTED)}."
        raise ClientError(message, http_status=415, code="unsupported_content_encoding")
    try:
        decoded = _decode_members(body, decoder, max_bytes)
    except (zlib.error, zstandard.ZstdError) as error:
        raise _damaged(name) from error
    if decoded is None:
        raise _damaged(name)
    return decoded


def request_too_large(max_bytes: int) -> ClientError:
    """The 413 of a body over the limit, which it names."""
    message = f"The request body is too large: at most {max_bytes} bytes are accepted."
    return ClientError(message, http_status=413, code="request_too_large")


class _Decoder(Protocol):
    """Of one member, in the manner of `zlib`."""

    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...
    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...


def _decode_members(body: bytes, open_decoder: Callable[[], _Decoder], max_bytes: int) -> bytes | None:
    """All members, joined; None when there are too many, or the last one is cut off."""
    decoded = bytearray()
    rest = body
    for _ in range(MAX_MEMBERS):
        decoder = open_decoder()
        decoded += decoder.decompress(rest, max_bytes + 1 - len(decoded))
        if len(decoded) > max_bytes:
            raise request_too_large(max_bytes)
        if not decoder.eof:
            return None
        rest = decoder.unused_data
        if not rest:
            return bytes(decoded)
    return None


def _open_zlib() -> _Decoder:
    return zlib.decompressobj(wbits=_WINDOW_OF_GZIP_OR_ZLIB)


class _ZstdFrame:
    """One zstd frame, decoded twice: the library's reader has a bound, but reads on after an empty frame and takes one
    that is cut off for a whole one; its decoder knows where the frame ends, but no bound."""

    def __init__(self) -> None:
        self._library = zstandard.ZstdDecompressor(max_window_size=MAX_ZSTD_WINDOW_BYTES)
        self.eof = False
        self.unused_data = b""

    def decompress(self, data: bytes, max_length: int, /) -> bytes:
        with self._library.stream_reader(data) as reader:
            bounded = reader.read(max_length)
        if len(bounded) == max_length:
            return bounded
        decoder = self._library.decompressobj()
        decoded = decoder.decompress(data)
        self.eof, self.unused_data = decoder.eof, decoder.unused_data
        return decoded


_DECODERS: Mapping[str, Callable[[], _Decoder]] = {
    "gzip": _open_zlib,
    "x-gzip": _open_zlib,
    "deflate": _open_zlib,
    "zstd": _ZstdFrame,
}


def _damaged(name: str) -> ClientError:
    return ClientError(f"The request body is not valid {name} data.", code="invalid_content_encoding")
