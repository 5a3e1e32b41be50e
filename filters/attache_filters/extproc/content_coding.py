"""Decodes the content coding of request bodies (RFC 9110, section 8.4), with a bound on what comes out."""

from __future__ import annotations

import zlib

from attache_core.errors import ClientError

SUPPORTED = ("gzip", "deflate", "identity")

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
    if name not in ("gzip", "x-gzip", "deflate"):
        message = f"The content encoding {name!r} is not supported: send the body as one of {', '.join(SUPPORTED)}."
        raise ClientError(message, http_status=415, code="unsupported_content_encoding")
    decoder = zlib.decompressobj(wbits=_WINDOW_OF_GZIP_OR_ZLIB)
    try:
        decoded = decoder.decompress(body, max_bytes + 1)
    except zlib.error as error:
        raise _damaged(name) from error
    if len(decoded) > max_bytes:
        raise request_too_large(max_bytes)
    if not decoder.eof:
        raise _damaged(name)
    return decoded


def request_too_large(max_bytes: int) -> ClientError:
    """The 413 of a body over the limit, which it names."""
    message = f"The request body is too large: at most {max_bytes} bytes are accepted."
    return ClientError(message, http_status=413, code="request_too_large")


def _damaged(name: str) -> ClientError:
    return ClientError(f"The request body is not valid {name} data.", code="invalid_content_encoding")
