"""The section `authentication`: what it means, and that its keys are shown nowhere."""

from __future__ import annotations

from pathlib import Path

import yaml

from attache_core.secret import REVEALING
from attache_envoy.gateway import Gateway, parse_gateway, with_options
from attache_envoy.gateway.authentication import ClientKey
from attache_envoy.run.bootstrap_file import compiled_bootstrap
from gateway_fakes import FILTERS

KEYS = ("canary-one-0123456789", "canary-two-0123456789", "canary-file-0123456789", "canary-upstream-0123456789")


def gateway_with_keys(folder: Path) -> Gateway:
    (folder / "key").write_text(f"{KEYS[2]}\n")
    text = f"""
upstreams: {{default: {{url: "http://h", api_key: {KEYS[3]}}}}}
authentication:
  api_keys:
    acme: ["${{ONE}}", {KEYS[1]}]
    globex: {{file: {folder / "key"}}}
"""
    return parse_gateway(text, "gateway.yaml", filters=FILTERS, environ={"ONE": KEYS[0]})


def test_keys_are_taken_as_texts_from_the_environment_and_from_files(tmp_path: Path) -> None:
    authentication = gateway_with_keys(tmp_path).authentication
    assert authentication is not None
    assert authentication.api_keys == {
        "acme": (ClientKey(KEYS[0]), ClientKey(KEYS[1])),
        "globex": (ClientKey(KEYS[2]),),
    }


def test_keys_are_in_what_envoy_gets_and_shown_nowhere_else(tmp_path: Path) -> None:
    gateway = gateway_with_keys(tmp_path)
    compiled = str(compiled_bootstrap(gateway, tmp_path))
    rendered = str(compiled_bootstrap(gateway.redacted(), tmp_path))
    shown = [repr(gateway), str(gateway.authentication), gateway.model_dump_json(), rendered]

    assert [key in compiled for key in KEYS] == [True] * 4
    assert [key for key in KEYS for text in shown if key in text] == []
    assert rendered.count("[redacted]") == 4
    assert sorted(gateway.envoys_secrets) == sorted(KEYS)


def test_resolved_gateway_reaches_the_workers_as_it_is(tmp_path: Path) -> None:
    gateway = gateway_with_keys(tmp_path)
    assert Gateway.model_validate_json(gateway.model_dump_json(context={REVEALING: True})) == gateway
    assert with_options(gateway, workers=3).authentication == gateway.authentication


def test_section_of_a_shown_file_is_not_taken_for_keys(tmp_path: Path) -> None:
    shown = yaml.safe_load(gateway_with_keys(tmp_path).model_dump_json(exclude_none=True))
    assert shown["authentication"] == {"api_keys": {"acme": ["[redacted]"] * 2, "globex": ["[redacted]"]}}
