"""What an approval is bound to: where the call goes, with whose rights, which tool it is, and its arguments.

A fingerprint is kept where others may read it, so the target, in which there may be a short secret, is stretched with
scrypt and a random salt before anything is derived from it: whoever guesses has to pay that for each guess. It is no
encryption, and no help for a secret that can be guessed in few tries. Pure, and slow on purpose: see `stretched`.
Source: RFC 7914, and for the parameters C. Percival, "Stronger key derivation via sequential memory-hard functions".
"""

from __future__ import annotations

import hashlib
import hmac
import secrets

from attache_core import json_codec

_SALT_BYTES = 16
_COST = 2**14
_BLOCK_SIZE = 8
_MAX_MEMORY_BYTES = 64 * 1024 * 1024


def new_salt() -> bytes:
    """A salt for the fingerprints of one response."""
    return secrets.token_bytes(_SALT_BYTES)


def stretched(target: str, salt: bytes) -> bytes:
    """The key that stands for a target; takes 16 MiB and tens of milliseconds: call it in a thread, once per target."""
    return hashlib.scrypt(
        target.encode(errors="surrogatepass"),
        salt=salt,
        n=_COST,
        r=_BLOCK_SIZE,
        p=1,
        maxmem=_MAX_MEMORY_BYTES,
    )


def fingerprint(key: bytes, owner: str | None, name: str, arguments: str) -> str:
    """The fingerprint of one call of the tool `name` of `owner`, at the target that `key` stands for."""
    return hmac.new(key, json_codec.encode([owner, name, arguments]), hashlib.sha256).hexdigest()
