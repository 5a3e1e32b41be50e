"""Every gateway file in the documentation can be used as it stands, and Envoy's configuration be made of it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from attache_envoy.compile.plan import plan
from attache_envoy.gateway import parse_gateway

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
BLOCK = re.compile(r"^```yaml\n(.*?)^```", re.MULTILINE | re.DOTALL)
VARIABLE = re.compile(r"\$\{(\w+)\}")
KEY = "a2V5IG9mIHRoaXJ0eS10d28gYnl0ZXMgZm9yIHRlc3Q="
"""Long enough for every secret that the pages have operators set, and thirty-two bytes in base64."""

FILES = [
    pytest.param(block, id=f"{page.name}-{number}")
    for page in PAGES
    for number, block in enumerate(BLOCK.findall(page.read_text(encoding="utf-8")))
    if re.search(r"^upstreams?:", block, re.MULTILINE)
]


@pytest.mark.parametrize("text", FILES)
def test_gateway_file_of_a_page_is_valid(text: str) -> None:
    environ = dict.fromkeys(VARIABLE.findall(text), KEY)
    assert plan(parse_gateway(text, "page.yaml", environ=environ)).segments
