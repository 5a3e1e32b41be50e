"""The table of limits says what the code says."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest
from pydantic import BaseModel

from attache_core.storage.limits import StoreLimits
from attache_core.tools.mcp.settings import McpSettings
from attache_core.tools.shell.settings import ShellSettings
from attache_core.tools.web_search.settings import WebSearchSettings
from attache_envoy.gateway.authentication import JwtAuthentication
from attache_envoy.gateway.model import Limits, Timeouts
from attache_envoy.gateway.upstream import Upstream
from attache_filters.builtin.chat_completions import ChatCompletionsConfig
from attache_filters.builtin.compact import CompactConfig
from attache_filters.builtin.compaction_settings import CheckpointSettings
from attache_filters.builtin.persist import PersistConfig
from attache_filters.builtin.resources import ResourcesConfig
from attache_filters.builtin.tool_dispatch import ToolDispatchConfig
from attache_filters.builtin.upstream_round import UpstreamRoundConfig
from attache_filters.builtin.validate import ValidateConfig

LIMITS = (Path(__file__).parents[2] / "docs" / "limits.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| `([\w.]+)` \| ([^|]+) \| [^|]+ \|$", re.MULTILINE)
UNITS = {"": 1, " s": 1, " KiB": 2**10, " MiB": 2**20, " GiB": 2**30}


def sections() -> dict[str, dict[str, float]]:
    """The rows of each section's table: what each bound is by default, in its own unit."""
    parts = re.split(r"^## (.+)$", LIMITS, flags=re.MULTILINE)[1:]
    return {title: dict(rows(text)) for title, text in zip(parts[::2], parts[1::2], strict=True)}


def rows(text: str) -> Iterable[tuple[str, float]]:
    for name, default in ROW.findall(text):
        number = re.match(r"\d+", default)
        assert number, default
        unit = default[number.end() :]
        yield name, int(number[0]) * (1 if name.endswith("_kib") else UNITS[unit])


def numbers(model: type[BaseModel]) -> Mapping[str, float]:
    """The defaults of a model's settings that are numbers."""
    defaults = {name: field.default for name, field in model.model_fields.items()}
    return {name: value for name, value in defaults.items() if type(value) in (int, float)}


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("`limits`", numbers(Limits)),
        ("`timeouts`", numbers(Timeouts)),
        ("`upstreams`", numbers(Upstream)),
        ("`authentication.jwt`", numbers(JwtAuthentication)),
        ("The filters `upstream_round` and `chat_completions`", numbers(UpstreamRoundConfig)),
        ("The filters `upstream_round` and `chat_completions`", numbers(ChatCompletionsConfig)),
        ("The filter `validate`", numbers(ValidateConfig)),
        ("The filter `persist`", numbers(PersistConfig)),
        ("The filter `tool_dispatch`", numbers(ToolDispatchConfig)),
        ("The filters `compact` and `compact_endpoint`", numbers(CompactConfig)),
        ("The filters `compact` and `compact_endpoint`", numbers(CheckpointSettings)),
        ("The filter `resources`", numbers(ResourcesConfig)),
        ("`mcp`", numbers(McpSettings)),
        ("`web_search`", numbers(WebSearchSettings)),
        ("`shell`", numbers(ShellSettings)),
        ("`storage`", numbers(StoreLimits)),
    ],
)
def test_every_number_among_the_settings_is_in_the_table_with_its_default(
    title: str, expected: Mapping[str, float]
) -> None:
    assert sections()[title] == expected


def test_constants_in_the_table_have_the_values_that_it_says() -> None:
    fixed = sections()["Fixed"]
    assert fixed
    for path, value in fixed.items():
        module, _, name = path.rpartition(".")
        assert getattr(importlib.import_module(module), name) == value, path
