"""The section `tools`, with tool types of a package that is installed as any other."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from attache_core.errors import ConfigError
from attache_core.secret import REVEALING
from attache_core.tools.outbound.secret import ApiKey
from attache_envoy.gateway import Gateway, parse_gateway, with_options
from attache_envoy.run.tool_types import tool_types

CANARY = "canary-tools-19bd"
MODULE = """
from attache_core.tools.outbound.secret import ApiKey
from attache_core.tools.tool_type import Offer, ToolSettings, ToolType
from attache_core.types.shape import Shape

class Settings(ToolSettings):
    api_key: ApiKey
    depth: int = 3

class Keyed(ToolType):
    shapes = {"keyed": Shape}
    settings_type = Settings
    async def offer(self, declaration): return Offer()

class Plain(ToolType):
    shapes = {"plain": Shape}
    async def offer(self, declaration): return Offer()
"""


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    information = tmp_path / "acme_section-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-section\nVersion: 1.0\n")
    points = "[attache.tools]\nacme_keyed = acme_section:Keyed\nacme_plain = acme_section:Plain\n"
    (information / "entry_points.txt").write_text(points)
    (tmp_path / "acme_section.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()


def parsed(section: str) -> Gateway:
    return parse_gateway(f"upstream: http://h\n{section}", "gateway.yaml", environ={"KEY": CANARY})


def made(gateway: Gateway) -> list[str]:
    return [type(each).__name__ for each in tool_types(gateway)]


def test_type_that_cannot_do_without_settings_runs_only_where_it_has_some() -> None:
    assert made(parsed("")) == ["Plain"]
    assert made(parsed("tools: {acme_plain: }")) == ["Plain"]
    gateway = parsed("tools: {acme_keyed: {api_key: '${KEY}', depth: 5}}")
    assert made(gateway) == ["Keyed", "Plain"]
    assert tool_types(gateway)[0].settings is gateway.tools["acme_keyed"]


def test_settings_reach_a_worker_whole_and_show_no_secret_on_the_way() -> None:
    gateway = with_options(parsed("tools: {acme_keyed: {api_key: '${KEY}', depth: 5}}"), workers=1)
    assert CANARY not in repr(gateway) + gateway.model_dump_json()
    assert gateway.model_dump(mode="json")["tools"] == {"acme_keyed": {"api_key": "[redacted]", "depth": 5}}
    received = Gateway.model_validate_json(gateway.model_dump_json(context={REVEALING: True}))
    assert received == gateway
    assert received.tools["acme_keyed"].model_dump() == {"api_key": ApiKey(CANARY), "depth": 5}


def test_what_cannot_be_used_says_where_and_what_would_be_right() -> None:
    with pytest.raises(ConfigError) as refused:
        parsed("tools:\n  acme_kayed: {}\n  acme_keyed: {dept: 5}\n  acme_plain:\n    depth: 1\n")
    assert (
        refused.value.message
        == """\
gateway.yaml:3: tools.acme_kayed: there is no tool type 'acme_kayed'. Did you mean acme_keyed? \
Known tool types: acme_keyed, acme_plain.
gateway.yaml:4: tools.acme_keyed.api_key: this key is required.
gateway.yaml:4: tools.acme_keyed.dept: unknown key. Did you mean depth? Known keys: api_key, depth.
gateway.yaml:6: tools.acme_plain.depth: unknown key. There are no keys."""
    )


def test_secret_that_cannot_be_one_is_not_repeated() -> None:
    with pytest.raises(ConfigError) as refused:
        parsed(f"tools: {{acme_keyed: {{api_key: '{CANARY} '}}}}")
    assert CANARY not in refused.value.message
