"""Envoy's messages as JSON."""

from __future__ import annotations

from datetime import timedelta

import betterproto2
import pytest
from envoy_data_plane.envoy.config.cluster.v3 import Cluster, ClusterDiscoveryType
from envoy_data_plane.envoy.config.core.v3 import (
    DataSource,
    HeaderValue,
    HeaderValueOption,
    HeaderValueOptionHeaderAppendAction,
    HttpProtocolOptions,
    Metadata,
)
from envoy_data_plane.envoy.config.listener.v3 import Listener

from attache_envoy.compile.messages import as_json, extension, seconds, tcp_address, unspecified


@pytest.mark.parametrize(
    ("message", "json"),
    [
        (Listener(), {}),
        (Listener(enable_reuse_port=False), {"enable_reuse_port": False}),
        (
            Listener(address=tcp_address("::1", 80)),
            {"address": {"socket_address": {"address": "::1", "port_value": 80}}},
        ),
        (Cluster(type=ClusterDiscoveryType.STATIC), {"type": "STATIC"}),
        (Cluster(connect_timeout=seconds(0.25)), {"connect_timeout": "0.25s"}),
        (HttpProtocolOptions(idle_timeout=timedelta(0)), {"idle_timeout": "0s"}),
        (HttpProtocolOptions(max_connection_duration=timedelta(days=1)), {"max_connection_duration": "86400s"}),
        (DataSource(inline_string=""), {"inline_string": ""}),
        (
            HeaderValueOption(
                header=HeaderValue(key="a", value="b"),
                append_action=HeaderValueOptionHeaderAppendAction.OVERWRITE_IF_EXISTS_OR_ADD,
            ),
            {"header": {"key": "a", "value": "b"}, "append_action": "OVERWRITE_IF_EXISTS_OR_ADD"},
        ),
        (Metadata(typed_filter_metadata={"x": unspecified()}), {"typed_filter_metadata": {"x": {}}}),
        (
            extension("e", HeaderValue(key="a")),
            {
                "name": "e",
                "typed_config": {"@type": "type.googleapis.com/envoy.config.core.v3.HeaderValue", "key": "a"},
            },
        ),
    ],
)
def test_fields_that_are_set_have_envoys_names_and_spelling(message: betterproto2.Message, json: object) -> None:
    assert as_json(message) == json
