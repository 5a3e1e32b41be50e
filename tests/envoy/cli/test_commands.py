"""The commands that print and end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml

from attache_filters.builtin.chat_completions import ChatCompletionsConfig
from attache_process import Finished, run_attache

Attache = Callable[..., Finished]

UPSTREAM = ("--upstream", "http://127.0.0.1:9")
SHORT_FILE = "upstream: http://127.0.0.1:9\nlisten: 127.0.0.1:7000\n"


def test_version_prints_the_version(attache: Attache) -> None:
    done = attache("--version")
    assert (done.exit_code, done.stdout) == (0, f"attache {version('agentic-attache')}\n")


@pytest.mark.parametrize(("placement", "streams"), [("fused", 2), ("split", 6)])
def test_render_prints_a_bootstrap_with_an_ext_proc_for_each_segment(
    attache: Attache, placement: str, streams: int
) -> None:
    done = attache("render", *UPSTREAM, "--placement", placement, "--run-dir", "/run/x")
    assert (done.exit_code, done.stderr) == (0, "")
    bootstrap = yaml.safe_load(done.stdout)
    assert bootstrap["admin"]["address"]["pipe"]["path"] == "/run/x/admin.sock"
    [gateway] = [each for each in bootstrap["static_resources"]["listeners"] if each["name"] == "gateway"]
    names = [each["name"] for each in gateway["filter_chains"][0]["filters"][0]["typed_config"]["http_filters"]]
    assert len([name for name in names if name.startswith("envoy.filters.http.ext_proc/")]) == streams
    assert gateway["traffic_direction"] == "INBOUND"


def test_render_expanded_prints_a_gateway_file_that_means_the_same(attache: Attache, tmp_path: Path) -> None:
    (tmp_path / "gateway.yaml").write_text(SHORT_FILE)
    expanded = attache("render", "--expanded")
    assert (expanded.exit_code, expanded.stderr) == (0, "")
    (tmp_path / "full.yaml").write_text(expanded.stdout)
    assert attache("render", "--expanded", "full.yaml").stdout == expanded.stdout
    assert attache("render", "full.yaml").stdout == attache("render").stdout
    assert yaml.safe_load(expanded.stdout)["chains"]["responses"][0]["filter"] == "validate"


@pytest.mark.parametrize("options", [(), ("--expanded",)])
def test_render_shows_no_keys(attache: Attache, tmp_path: Path, options: Sequence[str]) -> None:
    keys = "authentication: {api_keys: {acme: [canary-0123456789, canary-9876543210]}}\n"
    upstream = "upstreams: {default: {url: 'http://127.0.0.1:9', api_key: canary}}\n"
    (tmp_path / "gateway.yaml").write_text(upstream + keys)
    done = attache("render", *options)
    assert (done.exit_code, done.stderr, "canary" in done.stdout) == (0, "", False)
    assert done.stdout.count("[redacted]") == 3


def test_render_of_an_unknown_key_names_file_line_and_key(attache: Attache, tmp_path: Path) -> None:
    (tmp_path / "gateway.yaml").write_text(SHORT_FILE + "listne: 1\n")
    done = attache("render")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith("gateway.yaml:3: listne: ")


def test_validate_of_a_good_file_says_ok(attache: Attache, tmp_path: Path) -> None:
    (tmp_path / "gateway.yaml").write_text(SHORT_FILE)
    done = attache("validate")
    assert (done.exit_code, done.stdout, done.stderr) == (0, "ok\n", "")


def test_validate_of_a_bad_file_says_what_is_wrong(attache: Attache, tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text(SHORT_FILE + "workers: none\n")
    done = attache("validate", "bad.yaml")
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.startswith("bad.yaml:3: workers: ")


def test_validate_shows_what_envoy_refuses(attache: Attache, tmp_path: Path) -> None:
    lua = {"name": "lua", "typed_config": {"@type": "type.googleapis.com/no.such.Filter"}}
    chain = [{"envoy": lua}, *({"filter": name} for name in ("validate", "persist", "rehydrate", "upstream_round"))]
    (tmp_path / "gateway.yaml").write_text(SHORT_FILE + yaml.safe_dump({"chains": {"responses": chain}}))
    done = attache("validate")
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.startswith("Envoy refuses the compiled configuration:\n")
    assert "no.such.Filter" in done.stderr


def test_validate_shows_no_keys_of_what_envoy_quotes(attache: Attache, tmp_path: Path) -> None:
    quoted = {"name": "lua", "typed_config": {"@type": "type.googleapis.com/no.such.canary-0123456789"}}
    chains = {"chains": {"resources": [{"envoy": quoted}, {"filter": "resources"}]}}
    keys = {"authentication": {"api_keys": {"acme": "canary-0123456789"}}}
    (tmp_path / "gateway.yaml").write_text(SHORT_FILE + yaml.safe_dump(chains | keys))
    done = attache("validate")
    assert (done.exit_code, done.stdout, "canary" in done.stderr) == (1, "", False)
    assert "no.such.[redacted]" in done.stderr


def test_filters_lists_the_installed_filters(attache: Attache) -> None:
    done = attache("filters")
    assert (done.exit_code, done.stderr) == (0, "")
    rows = {line.split()[0]: line.split()[1:3] for line in done.stdout.splitlines()}
    assert rows["tool_dispatch"] == ["turn", "agentic-attache"]
    assert rows["upstream_round"] == ["inference", "agentic-attache"]
    assert rows["resources"] == ["http", "agentic-attache"]


def test_filters_with_a_name_shows_its_settings(attache: Attache) -> None:
    done = attache("filters", "tool_dispatch")
    assert (done.exit_code, done.stderr) == (0, "")
    [row] = [line for line in done.stdout.splitlines() if line.startswith("max_rounds")]
    assert row.split()[:3] == ["max_rounds", "int", "10"]


def test_settings_of_a_filter_are_not_cut_off_where_there_is_no_room(
    attache: Attache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = attache("filters", "chat_completions").stdout
    settings = ChatCompletionsConfig.model_fields
    assert [word for line in shown.splitlines() for word in line.split()[:1] if word in settings] == list(settings)
    assert "…" not in shown


def test_filters_with_an_unknown_name_lists_the_known_ones(attache: Attache) -> None:
    done = attache("filters", "tool_dispach")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith("There is no filter 'tool_dispach'. Installed: ")


@pytest.mark.e2e
@pytest.mark.parametrize("placement", ["fused", "split"])
def test_the_demo_holds_a_conversation_and_finds_it_right(tmp_path: Path, placement: str) -> None:
    done = run_attache(tmp_path, "demo", "--placement", placement)
    assert (done.exit_code, "✗" in done.stdout) == (0, False), done
    for shown in (
        f"in Python, {placement}:",
        "given 1 input item.",
        "mcp_call  get_weather(",
        "equal to what was sent",
    ):
        assert shown in done.stdout
    counted = "requests to the model server, as Envoy counts them: "
    assert [line.partition(counted)[2] for line in done.stdout.splitlines() if counted in line] == ["1", "2", "0"]
    assert list(tmp_path.iterdir()) == []
