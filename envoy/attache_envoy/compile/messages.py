"""Small Envoy messages that several parts of the configuration are made of."""

from __future__ import annotations

import dataclasses
from datetime import timedelta
from pathlib import Path

import betterproto2
from envoy_data_plane.envoy.config.core.v3 import (
    Address,
    DataSource,
    HeaderValue,
    HeaderValueOption,
    HeaderValueOptionHeaderAppendAction,
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
    """A message as JSON with Envoy's field names; `Any` fields are expanded to `@type` and their fields.

    betterproto2's own `to_dict` works out every message's type hints anew and validates it again, which is half of the
    time that a compilation takes. Here the values tell: what equals its default is left out, as in proto3's JSON.
    """
    if isinstance(message, _Packed):
        return message.content
    set_fields = ((field, getattr(message, field.name)) for field in _fields(message))
    return {field.name.rstrip("_"): _plain(value) for field, value in set_fields if not _is_default(field, value)}


def _fields(message: betterproto2.Message) -> tuple[dataclasses.Field[object], ...]:
    return dataclasses.fields(message)  # type: ignore[arg-type]  # every generated class is a dataclass, their base is not


def _is_default(field: dataclasses.Field[object], value: object) -> bool:
    # A field that may be absent has the default None: its 0 or False is a value.
    factory = field.default_factory
    return bool(value == (field.default if factory is dataclasses.MISSING else factory()))


def _plain(value: object) -> object:
    match value:
        case betterproto2.Message():
            return as_json(value)
        case betterproto2.Enum():
            return value.proto_name or value.name
        case timedelta():
            return f"{value.total_seconds():.6f}".rstrip("0").rstrip(".") + "s"
        case list():
            return [_plain(each) for each in value]
        case dict():
            return {key: _plain(each) for key, each in value.items()}
    return value


class _Packed(AnyMessage):
    """An `Any` whose JSON is known already. It has no binary form: it is for `as_json` only."""

    content: Json


def packed(message: betterproto2.Message) -> AnyMessage:
    """A message with its type, as `typed_config` fields want it; for `as_json` only."""
    type_url = default_message_pool.type_to_url[type(message)]
    return _known({"@type": type_url, **as_json(message)})


def unspecified() -> AnyMessage:
    """An `Any` of no type, `{}`: what a route gives a filter to switch it on and leave its configuration alone."""
    return _known({})


def _known(content: Json) -> AnyMessage:
    result = _Packed()
    result.content = content
    return result


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


def header(name: str, value: str) -> HeaderValueOption:
    """A header in place of any that there is; `value` may hold Envoy's `%COMMAND%`s. None is set where it is empty."""
    overwrite = HeaderValueOptionHeaderAppendAction.OVERWRITE_IF_EXISTS_OR_ADD
    return HeaderValueOption(header=HeaderValue(key=name, value=value), append_action=overwrite)


def default_header(name: str, value: str) -> HeaderValueOption:
    """A header where there is none of that name."""
    return HeaderValueOption(
        header=HeaderValue(key=name, value=value), append_action=HeaderValueOptionHeaderAppendAction.ADD_IF_ABSENT
    )


def text(value: str) -> DataSource:
    """Inline text."""
    return DataSource(inline_string=value)


def json_text(value: object) -> DataSource:
    """Inline JSON."""
    return text(json_codec.encode(value).decode())
