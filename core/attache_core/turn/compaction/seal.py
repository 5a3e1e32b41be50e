"""Checkpoints as opaque text: encrypted and authenticated, and bound to a tenant.

Knows keys and what is in a checkpoint; is unaware of windows. Invariants: a text opens only if it was sealed with one
of the keys, for the same tenant, and not a character of it has changed; of why it does not open, nothing is said.
Source: the Fernet specification, by way of `cryptography`; OpenAI's error for encrypted content of others.
"""

from __future__ import annotations

from collections.abc import Sequence

from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from attache_core import json_codec
from attache_core.errors import ClientError
from attache_core.json_codec import Json
from attache_core.turn.compaction.checkpoint import Checkpoint
from attache_core.turn.compaction.settings import CompactionKey


class Seal:
    """Closes and opens checkpoints."""

    def __init__(self, keys: Sequence[CompactionKey]) -> None:
        """The first key closes; each of them opens."""
        self._keys = MultiFernet([Fernet(key.reveal()) for key in keys])

    def close(self, tenant: str, checkpoint: Checkpoint) -> str:
        """The text that a client keeps."""
        payload: Json = {
            "tenant": tenant,
            "before": checkpoint.before,
            "summary": checkpoint.summary,
            "after": checkpoint.after,
        }
        return self._keys.encrypt(json_codec.encode(payload)).decode()

    def open(self, tenant: str, encrypted_content: str) -> Checkpoint:
        """What was closed for this tenant.

        Raises:
            ClientError: 400 `invalid_encrypted_content`; the same for whatever is wrong with it.
        """
        try:
            payload = json_codec.decode_exactly(self._keys.decrypt(encrypted_content.encode(errors="replace")))
        except InvalidToken:
            raise _not_ours() from None
        if payload["tenant"] != tenant:
            raise _not_ours()
        return Checkpoint(tuple(payload["before"]), payload["summary"], tuple(payload["after"]))


def _not_ours() -> ClientError:
    return ClientError(
        "The encrypted content of a compaction item could not be verified: send the item as this gateway gave it, or "
        "the conversation without it.",
        code="invalid_encrypted_content",
        param="input",
    )
