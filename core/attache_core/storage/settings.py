"""The `storage:` section of the gateway file: where turns are stored, who makes the tables, and the store's bounds."""

from __future__ import annotations

from typing import Literal

from attache_core.secret import SecretSetting
from attache_core.storage.limits import StoreLimits
from attache_core.storage.url import parse_place, shown

Migrate = Literal["apply", "verify"]
NO_URL = "a store is a URL: sqlite:///FILE or postgresql://USER:PASSWORD@HOST/DATABASE."


class StoreUrl(SecretSetting):
    """The URL of a store; a dump shows it without its password."""

    __slots__ = ()

    @classmethod
    def check(cls, value: object) -> str:
        """See `SecretSetting.check`."""
        if not isinstance(value, str):
            raise ValueError(NO_URL)  # noqa: TRY004 - pydantic takes no other kind
        try:
            parse_place(value)
        except ValueError as error:
            raise ValueError(f"{error}.") from None
        return value

    def shown(self) -> str:
        """See `SecretSetting.shown`."""
        return shown(self.reveal())


class StorageSettings(StoreLimits):
    """Where turns are stored. A text stands for `{url: TEXT}`."""

    url: StoreUrl
    """`sqlite:///relative/path.db`, `sqlite:////absolute/path.db` or `postgresql://user:password@host/database`."""

    migrate: Migrate = "apply"
    """`apply`: a start makes the tables and brings them up to date. `verify`: it only refuses to run unless they are;
    `attache migrate` brings them there."""
