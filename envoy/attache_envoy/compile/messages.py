"""Small Envoy messages that several parts of the configuration are made of."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import cast

import betterproto2
from envoy_data_plane.envoy.config.core.v3 import (
    Address,
    DataSource,
    Pipe,
    SocketAddress,
    TypedExtensionConfig,
)
from envoy_data_plane.google.protobuf import Any as AnyMessage
from envoy_data_plane.message_pool import default_message_pool

from attache_core import json_codec
from attache_core.json_codec import Json

OWNER_ONLY = 0o600


def as_json(message: betterproto2.Message) -> Json:
    """A message as JSON with Envoy's field names; `Any` fields are expanded to `@type` and their fields."""
    return message.to_dict(casing=cast("betterproto2.Casing", _unchanged))


def _unchanged(name: str) -> str:
    """Fields are named as in the .proto files already; betterproto2's snake case would split `5xx`."""
    return name


class _Packed(AnyMessage):
    """An `Any` made once into JSON, where betterproto2 would encode it to bytes and decode it again, at each level."""

    fields: Json

    def to_dict(self, **_options: object) -> Json:
        return {"@type": self.type_url, **self.fields}


def packed(message: betterproto2.Message) -> AnyMessage:
    """A message with its type, as `typed_config` fields want it; for `as_json` only, it has no binary form."""
    result = _Packed(type_url=default_message_pool.type_to_url[type(message)])
    result.fields = as_json(message)
    return result


class Unspecified(AnyMessage):
    """An `Any` of no type, `{}`: what a route gives a filter to switch it on and leave its configuration alone."""

    def to_dict(self, **_options: object) -> Json:
        return {}


def extension(name: str, message: betterproto2.Message) -> TypedExtensionConfig:
    """A named extension."""
    return TypedExtensionConfig(name=name, typed_config=packed(message))


def seconds(value: float) -> timedelta:
    """A duration."""
    return timedelta(seconds=value)


NO_LIMIT = timedelta(0)
"""What Envoy takes for no time limit at all."""


def unix_address(path: Path, *, mode: int = 0) -> Address:
    """A Unix socket; `mode` is for sockets that Envoy creates."""
    return Address(pipe=Pipe(path=str(path), mode=mode))


def tcp_address(host: str, port: int) -> Address:
    """An IP address, or a host name where the cluster resolves names."""
    return Address(socket_address=SocketAddress(address=host, port_value=port))


def text(value: str) -> DataSource:
    """Inline text."""
    return DataSource(inline_string=value)


def json_text(value: object) -> DataSource:
    """Inline JSON."""
    return text(json_codec.encode(value).decode())
