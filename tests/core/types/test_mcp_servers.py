"""Which MCP servers a request may use: those of the gateway file by their label, and perhaps others by their URL."""

from __future__ import annotations

from typing import Any

import pytest

from attache_core.errors import ClientError
from attache_core.json_codec import Json
from attache_core.types.extensions import Extensions
from attache_core.types.mcp_servers import KnownServers
from attache_core.types.tools import validate_tools

LABELLED: Json = {"type": "mcp", "server_label": "weather", "require_approval": "never"}
OTHER: Json = {**LABELLED, "server_label": "theirs", "server_url": "https://h/mcp"}
OPERATORS = "The gateway itself knows 'weather', its URL and its credentials."

OPEN = KnownServers(("weather", "maps"))
CLOSED = KnownServers(("weather", "maps"), only_these=True)
OFF = KnownServers(only_these=True)


def refusal(known: KnownServers, tool: Json) -> tuple[str | None, str | None, str] | None:
    """Code, param and message; None where the tool is accepted."""
    try:
        validate_tools([{"type": "shell"}, tool], Extensions(mcp_servers=known))
    except ClientError as error:
        return error.code, error.param, error.message
    return None


@pytest.mark.parametrize("known", [OPEN, CLOSED])
@pytest.mark.parametrize("fields", [{}, {"server_url": None, "headers": None, "authorization": None}])
def test_server_that_the_gateway_knows_is_declared_by_its_label_alone(known: KnownServers, fields: Json) -> None:
    assert refusal(known, {**LABELLED, **fields, "allowed_tools": ["a"], "server_description": "d"}) is None


@pytest.mark.parametrize("known", [OPEN, CLOSED])
@pytest.mark.parametrize(
    ("name", "value"), [("server_url", "https://h/mcp"), ("authorization", "s3cret"), ("headers", {"x-key": "s3cret"})]
)
def test_what_a_client_says_of_a_server_that_the_gateway_knows_is_refused(
    known: KnownServers, name: str, value: Any
) -> None:
    message = f"Unsupported parameter: 'tools[1].{name}'. {OPERATORS}"
    assert refusal(known, {**LABELLED, name: value}) == ("unsupported_parameter", f"tools[1].{name}", message)


def test_server_that_a_request_brings_is_accepted_unless_only_known_ones_may_be_used() -> None:
    assert refusal(OPEN, OTHER) is None
    message = "Invalid value: 'theirs'. Supported values are: 'weather' and 'maps'."
    assert refusal(CLOSED, OTHER) == ("invalid_value", "tools[1].server_label", message)
    off = "Invalid 'tools[1].server_label': this gateway uses no MCP servers."
    assert refusal(OFF, OTHER) == ("unsupported_value", "tools[1].server_label", off)


@pytest.mark.parametrize(
    ("known", "rest"),
    [
        (KnownServers(), ""),
        (KnownServers(("maps",)), " The 'server_label' of a server that needs none is 'maps'."),
        (KnownServers(("maps", "news")), " The 'server_label' of a server that needs none is 'maps' or 'news'."),
    ],
)
def test_unknown_server_without_a_url_is_told_which_would_need_none(known: KnownServers, rest: str) -> None:
    param = "tools[1].server_url"
    message = f"Missing required parameter: '{param}'.{rest}"
    assert refusal(known, LABELLED) == ("missing_required_parameter", param, message)
