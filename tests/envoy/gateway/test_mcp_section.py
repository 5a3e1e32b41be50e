"""The section `mcp` of the gateway file: servers by name, with secrets from the environment."""

from __future__ import annotations

import pytest

from attache_core.errors import ConfigError
from attache_envoy.gateway import parse_gateway
from attache_envoy.gateway.load import with_options

CANARY = "canary-90ab"
FILE = """\
upstream: http://127.0.0.1:8000
mcp:
  servers:
    weather:
      url: https://weather.example.com/mcp
      authorization: ${WEATHER_TOKEN}
      headers: {x-team: blue}
      allowed_tools: [forecast]
      description: Weather.
"""


def test_server_is_named_with_a_token_of_the_environment_and_options_keep_it() -> None:
    gateway = parse_gateway(FILE, "gateway.yaml", environ={"WEATHER_TOKEN": CANARY})
    for each in (gateway, with_options(gateway, listen="0.0.0.0:80")):
        weather = each.mcp.servers["weather"]
        assert weather.url.reveal() == "https://weather.example.com/mcp"
        assert weather.authorization is not None
        assert (weather.authorization.reveal(), weather.transport) == (CANARY, "auto")
        assert (weather.allowed_tools, weather.description) == (("forecast",), "Weather.")
    assert CANARY not in str(gateway.model_dump(mode="json"))


@pytest.mark.parametrize(
    ("servers", "problem"),
    [
        ("{weather: canary}", "mcp.servers.weather: a mapping of keys to values is expected."),
        ("{weather: {}}", "mcp.servers.weather.url: this key is required."),
        (
            "{weather: {url: canary}}",
            "url: an absolute http or https URL without a login is expected; credentials have their own keys.",
        ),
        ("{weather: {url: 'http://h', token: canary}}", "mcp.servers.weather.token: unknown key."),
        (
            "{weather: {url: 'http://h', headers: {Host: canary}}}",
            "mcp.servers.weather.headers: 'Host' is set by HTTP or MCP itself.",
        ),
        (
            "{weather: {url: 'http://h', transport: stdio}}",
            "mcp.servers.weather.transport: input should be 'auto', 'streamable_http' or 'sse', not 'stdio'.",
        ),
        ("{'the weather': {url: 'http://h'}}", "string should match pattern '^[a-zA-Z0-9_-]+$', not 'the weather'."),
    ],
)
def test_server_that_cannot_be_names_file_line_and_key_and_shows_no_secret(servers: str, problem: str) -> None:
    with pytest.raises(ConfigError) as raised:
        parse_gateway(f"upstream: http://h\nmcp: {{servers: {servers}}}\n", "gateway.yaml")
    assert str(raised.value).startswith("gateway.yaml:2: mcp.servers")
    assert str(raised.value).endswith(problem)
    assert "canary" not in str(raised.value)
