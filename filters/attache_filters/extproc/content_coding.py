"""Decodes the content codings of request bodies (RFC 9110, section 8.4), with a bound on what comes out.

Knows gzip (RFC 1952), zlib (`deflate`), zstd (RFC 8878) and br (RFC 7932), also several of them one after the other; is
unaware of what is inside. Invariants: no more than `max_bytes` and one are ever decoded, whatever the body claims; a
body that is cut off, or followed by something else, is refused. A body may consist of several members (gzip) or frames
(zstd).
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from typing import Protocol

import brotli  # type: ignore[import-untyped]  # it ships no types
import zstandard

from attache_core.errors import ClientError

SUPPORTED = ("gzip", "deflate", "zstd", "br", "identity")

MAX_CODINGS = 4
"""Codings of one body, one on top of the other."""

MAX_MEMBERS = 256
"""Members of one body; empty ones would cost time and yield nothing."""

MAX_ZSTD_WINDOW_BYTES = 8 << 20
"""What a zstd frame may ask its decoder to keep (RFC 9659)."""

_WINDOW_OF_GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS


def decode_body(body: bytes, codings: str, max_bytes: int) -> bytes:
    """`body` without its content codings.

    Args:
        codings: the value of `content-encoding`: names with commas between them, in the order in which the codings were
            applied; empty means identity.

    Raises:
        ClientError: 415 for another coding, or too many; 400 when the body does not follow one; 413 when what one of
            them makes of it has more than `max_bytes`.
    """
    names = [name.strip().lower() for name in codings.split(",")]
    applied = [name for name in names if name not in ("", "identity")]
    if len(applied) > MAX_CODINGS:
        raise _unsupported(f"At most {MAX_CODINGS} content encodings are supported")
    for name in reversed(applied):
        if name not in _DECODERS:
            raise _unsupported(f"The content encoding {name[:32]!r} is not supported")
    for name in reversed(applied):
        body = _decode(body, name, max_bytes)
    return body


def request_too_large(max_bytes: int) -> ClientError:
    """The 413 of a body over the limit, which it names."""
    message = f"The request body is too large: at most {max_bytes} bytes are accepted."
    return ClientError(message, http_status=413, code="request_too_large")


def _decode(body: bytes, name: str, max_bytes: int) -> bytes:
    try:
        decoded = _decode_members(body, _DECODERS[name], max_bytes)
    except (zlib.error, zstandard.ZstdError, brotli.error) as error:
        raise _damaged(name) from error
    if decoded is None:
        raise _damaged(name)
    return decoded


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


class _BrotliStream:
    """A whole brotli stream. Its format has no members, and the library refuses what follows the end."""

    unused_data = b""

    def __init__(self) -> None:
        self._library = brotli.Decompressor()

    @property
    def eof(self) -> bool:
        return bool(self._library.is_finished())

    def decompress(self, data: bytes, max_length: int, /) -> bytes:
        # One call gives a little more, or less, than it is asked for; asking again with nothing brings the rest.
        decoded = bytearray(self._library.process(data, output_buffer_limit=max_length))
        while len(decoded) < max_length and not self._library.can_accept_more_data():
            decoded += self._library.process(b"", output_buffer_limit=max_length - len(decoded))
        return bytes(decoded)


_DECODERS: Mapping[str, Callable[[], _Decoder]] = {
    "gzip": _open_zlib,
    "x-gzip": _open_zlib,
    "deflate": _open_zlib,
    "zstd": _ZstdFrame,
    "br": _BrotliStream,
}


def _unsupported(what: str) -> ClientError:
    message = f"{what}: send the body as one of {', '.join(SUPPORTED)}."
    accepted = {"accept-encoding": ", ".join(SUPPORTED)}
    return ClientError(message, http_status=415, code="unsupported_content_encoding", headers=accepted)


def _damaged(name: str) -> ClientError:
    return ClientError(f"The request body is not valid {name} data.", code="invalid_content_encoding")
