"""The section `compaction` of a gateway file: the keys that checkpoints are sealed with."""

from __future__ import annotations

import base64
import binascii
from typing import Any

from pydantic import BaseModel, ConfigDict, field_validator

from attache_core.secret import SecretSetting

KEY_BYTES = 32

_WRONG = "a key is 32 random bytes in base64, such as `openssl rand -base64 32` prints."


class CompactionKey(SecretSetting):
    """A key in URL-safe base64; the usual alphabet is read as well."""

    __slots__ = ()

    @classmethod
    def check(cls, value: object) -> str:
        """See `SecretSetting.check`."""
        if not isinstance(value, str):
            raise ValueError(_WRONG)  # noqa: TRY004 - pydantic takes no other kind
        try:
            key = base64.b64decode(value.replace("-", "+").replace("_", "/"), validate=True)
        except (ValueError, binascii.Error):
            raise ValueError(_WRONG) from None
        if len(key) != KEY_BYTES:
            raise ValueError(_WRONG)
        return base64.urlsafe_b64encode(key).decode()


class CompactionSettings(BaseModel):
    """What lets this gateway make checkpoints, and read them."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    keys: tuple[CompactionKey, ...]
    """Keys for what clients keep of a compacted conversation: the first one seals, all of them open. To change it, put
    the new key in front, and take the old one out when no conversation needs it any more. Give them as `${NAME}`, from
    the environment; gateways that share a store share them."""

    @field_validator("keys", mode="before")
    @classmethod
    def _check_keys(cls, value: Any) -> Any:  # noqa: ANN401 - any input
        # pydantic would repeat what it was given, which may be a key.
        if not isinstance(value, (list, tuple)) or not value:
            raise ValueError("a list of at least one key is expected.")
        return value
