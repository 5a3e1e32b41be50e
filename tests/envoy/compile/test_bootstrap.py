"""What a gateway compiles to, and that Envoy itself accepts it."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from attache_core.json_codec import Json
from attache_envoy.compile.bootstrap import compile_bootstrap, render
from attache_envoy.compile.plan import plan
from attache_envoy.compile.sockets import Sockets
from attache_envoy.gateway import Gateway, parse_gateway
from attache_filters.sdk.registry import load_filters
from envoy_process import ENVOY
from gateway_fakes import FILTERS

EXT_PROC = "envoy.filters.http.ext_proc"
EXAMPLES = sorted(
    path
    for path in (Path(__file__).parents[3] / "examples").glob("*/gateway.yaml")
    if not (path.parent / "pyproject.toml").exists()
)
SOCKETS = Sockets(Path("/run/attache"))
SHORTEST = "upstream: http://127.0.0.1:8000\n"
WITH_OTHERS = """
upstreams:
  near: {url: "http://127.0.0.1:8000"}
  far: {url: "https://llm.example.com/openai/v1"}
  far_address: {url: "https://192.0.2.1:8443"}
  named: {url: "http://localhost:8000/base"}
chains:
  responses:
    - filter: validate
    - envoy:
        name: envoy.filters.http.lua
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua
          default_source_code: {inline_string: "function envoy_on_request(handle) end"}
    - filter: persist
    - ext_proc: {address: "unix:/tmp/foreign.sock"}
    - filter: rehydrate
    - filter: tool_dispatch
      loop:
        - envoy:
            name: envoy.filters.http.header_mutation
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.header_mutation.v3.HeaderMutation
              mutations: {request_mutations: [{remove: x-internal}]}
        - ext_proc:
            address: guard.example.com:9000
            processing_mode: {request_body_mode: BUFFERED, response_header_mode: SKIP}
        - filter: upstream_round
routes:
  - {match: {path: "/v1/responses/{response_id}/input_items", methods: [GET, HEAD]}, chain: resources, upstream: named}
  - {match: {prefix: /v1/embeddings}, upstream: far}
"""


def gateway(text: str, placement: str) -> Gateway:
    return parse_gateway(f"placement: {placement}\n{text}", "gateway.yaml", filters=FILTERS, environ={})


def compiled(text: str, placement: str, sockets: Sockets = SOCKETS) -> Json:
    checked = gateway(text, placement)
    return compile_bootstrap(checked, plan(checked, filters=FILTERS), sockets)


def listener(bootstrap: Json, name: str) -> Json:
    found = [each for each in bootstrap["static_resources"]["listeners"] if each["name"] == name]
    return found[0]  # type: ignore[no-any-return] # JSON


def manager(bootstrap: Json, name: str) -> Json:
    network_filter = listener(bootstrap, name)["filter_chains"][0]["filters"][0]
    return network_filter["typed_config"]  # type: ignore[no-any-return] # JSON


def filter_names(bootstrap: Json, name: str) -> list[str]:
    return [each["name"] for each in manager(bootstrap, name)["http_filters"]]


def listener_names(bootstrap: Json) -> list[str]:
    return [each["name"] for each in bootstrap["static_resources"]["listeners"]]


def routes(bootstrap: Json, name: str) -> list[Json]:
    hosts = manager(bootstrap, name)["route_config"]["virtual_hosts"]
    return hosts[0]["routes"]  # type: ignore[no-any-return] # JSON


def cluster(bootstrap: Json, name: str) -> Json:
    found = [each for each in bootstrap["static_resources"]["clusters"] if each["name"] == name]
    return found[0]  # type: ignore[no-any-return] # JSON


def overwrite(name: str, value: str) -> Json:
    return {"header": {"key": name, "value": value}, "append_action": "OVERWRITE_IF_EXISTS_OR_ADD"}


def accept(bootstrap: Json, path: Path) -> None:
    path.write_text(render(bootstrap), encoding="utf-8")
    done = subprocess.run(
        [ENVOY, "--mode", "validate", "-c", path, "--log-level", "error"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, f"configuration '{path}' OK\n", "")


@pytest.mark.parametrize("placement", ["fused", "split"])
@pytest.mark.parametrize("text", [SHORTEST, WITH_OTHERS], ids=["shortest", "with_others"])
def test_envoy_accepts_what_a_gateway_compiles_to(text: str, placement: str, tmp_path: Path) -> None:
    accept(compiled(text, placement), tmp_path / "bootstrap.yaml")


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.parent.name)
@pytest.mark.parametrize("placement", ["fused", "split"])
def test_envoy_accepts_the_examples(path: Path, placement: str, tmp_path: Path) -> None:
    text = f"placement: {placement}\n{path.read_text(encoding='utf-8')}"
    checked = parse_gateway(text, str(path), filters=load_filters(), environ={})
    accept(compile_bootstrap(checked, plan(checked), SOCKETS), tmp_path / "bootstrap.yaml")


@pytest.mark.parametrize("name", ["n", "y", "N", "Y"])
def test_text_that_envoy_would_read_as_a_boolean_stays_a_text(name: str, tmp_path: Path) -> None:
    upstreams = {"one": {"url": "http://127.0.0.1:1", "models": [name]}}
    accept(compiled(yaml.safe_dump({"upstreams": upstreams}), "fused"), tmp_path / "bootstrap.yaml")


MODELS = {"a": [["m"], ["m-*", "n"]], "b": [["o-*"], ["m-x", "x/y.z*"]], "default": [["p"]]}
"""What upstreams may say that they have: no two of them the same."""


def upstream_called(name: str) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {"url": st.sampled_from(["http://h", "https://h/a b/v1", "http://[::1]:1/v1", r"http://h/\1"])},
        optional={
            "headers_timeout_s": st.just(0.5),
            "dialect": st.sampled_from(["vllm", "openai"]),
            "models": st.sampled_from(MODELS[name]),
        },
    )


anything_in_a_gateway: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {"upstreams": st.fixed_dictionaries({}, optional={name: upstream_called(name) for name in MODELS}).filter(bool)},
    optional={
        "listen": st.sampled_from(["[::1]:0", "0.0.0.0:65535"]),
        "workers": st.integers(1, 4),
        "limits": st.fixed_dictionaries({}, optional={"max_header_kib": st.just(8192), "max_streams": st.just(1)}),
        "timeouts": st.just({"stream_idle_s": 60.5, "worker_connect_s": 0.001}),
        "routes": st.just(
            [
                {"match": {"path": "/{a}/b.c/{d}"}, "chain": "resources"},
                {"match": {"prefix": "/"}, "chain": "responses"},
            ]
        ),
    },
)


@st.composite
def bypassing(draw: st.DrawFn) -> dict[str, Any]:
    """Any gateway with a route past its chain, so before servers that may be bypassed."""
    value = draw(anything_in_a_gateway)
    upstreams = {name: {**upstream, "dialect": "openai"} for name, upstream in value["upstreams"].items()}
    route = {"match": {"path": "/v1/responses"}, "chain": "responses", "bypass": "stateless"}
    if draw(st.booleans()):
        route["upstream"] = draw(st.sampled_from(sorted(upstreams)))
    return {**value, "upstreams": upstreams, "routes": [route, *value.get("routes", [])]}


@pytest.mark.parametrize("placement", ["fused", "split"])
@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=anything_in_a_gateway | bypassing())
def test_envoy_accepts_what_any_valid_gateway_compiles_to(
    value: dict[str, Any], placement: str, tmp_path: Path
) -> None:
    accept(compiled(yaml.safe_dump(value), placement), tmp_path / "bootstrap.yaml")


def test_rendered_yaml_is_the_bootstrap_without_anchors() -> None:
    bootstrap = compiled(WITH_OTHERS, "split")
    text = render(bootstrap)
    assert yaml.safe_load(text) == bootstrap
    assert "&id" not in text


def test_split_has_one_ext_proc_for_each_hosted_filter_in_order_and_a_loop_listener_below() -> None:
    bootstrap = compiled(SHORTEST, "split")
    names = ["validate", "persist", "rehydrate", "tool_dispatch", "upstream_round"]
    assert listener_names(bootstrap) == ["gateway", "loop/responses/tool_dispatch"]
    assert filter_names(bootstrap, "gateway") == [
        "attache.clean_response",
        *(f"{EXT_PROC}/responses/{name}" for name in names),
        f"{EXT_PROC}/resources/resources",
        "attache.clean_request",
        "envoy.filters.http.router",
    ]
    assert filter_names(bootstrap, "loop/responses/tool_dispatch") == [
        "attache.clean_response",
        f"{EXT_PROC}/responses/upstream_round",
        "attache.clean_request",
        "envoy.filters.http.router",
    ]


def test_fused_has_one_ext_proc_for_each_chain_and_a_loop_listener_without_any() -> None:
    bootstrap = compiled(SHORTEST, "fused")
    assert listener_names(bootstrap) == ["gateway", "loop/responses/0"]
    guards = ["attache.clean_response", "attache.clean_request", "envoy.filters.http.router"]
    assert filter_names(bootstrap, "gateway") == [
        guards[0],
        f"{EXT_PROC}/responses/0",
        f"{EXT_PROC}/resources/0",
        *guards[1:],
    ]
    assert filter_names(bootstrap, "loop/responses/0") == guards


def test_native_and_foreign_filters_stand_where_the_file_puts_them() -> None:
    bootstrap = compiled(WITH_OTHERS, "fused")
    assert filter_names(bootstrap, "gateway")[1:-3] == [
        f"{EXT_PROC}/responses/0",
        "envoy.filters.http.lua/responses/1",
        f"{EXT_PROC}/responses/2",
        f"{EXT_PROC}/foreign/responses/3",
        f"{EXT_PROC}/responses/4",
        "envoy.filters.http.header_mutation/responses/6",
        f"{EXT_PROC}/foreign/responses/7",
        f"{EXT_PROC}/responses/8",
    ]
    assert filter_names(bootstrap, "loop/responses/4")[1:-2] == [
        "envoy.filters.http.header_mutation/responses/6",
        f"{EXT_PROC}/foreign/responses/7",
        f"{EXT_PROC}/responses/8",
    ]
    lua = manager(bootstrap, "gateway")["http_filters"][2]["typed_config"]
    assert lua == {
        "@type": "type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua",
        "default_source_code": {"inline_string": "function envoy_on_request(handle) end"},
    }


def test_hosted_segment_gets_everything_and_fails_closed() -> None:
    found = manager(compiled(SHORTEST, "fused"), "gateway")["http_filters"][1]
    assert found == {
        "name": f"{EXT_PROC}/responses/0",
        "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.filters.http.ext_proc.v3.ExternalProcessor",
            "grpc_service": {
                "envoy_grpc": {"cluster_name": "workers"},
                "timeout": "0s",
                "initial_metadata": [{"key": "x-attache-segment", "value": "responses/0"}],
            },
            "processing_mode": {
                "request_header_mode": "SEND",
                "response_header_mode": "SEND",
                "request_body_mode": "FULL_DUPLEX_STREAMED",
                "response_body_mode": "FULL_DUPLEX_STREAMED",
                "request_trailer_mode": "SEND",
                "response_trailer_mode": "SEND",
            },
            "stat_prefix": "responses/0",
            "mutation_rules": {"allow_all_routing": True},
            "route_cache_action": "RETAIN",
            "status_on_error": {"code": "ServiceUnavailable"},
        },
        "disabled": True,
    }


@pytest.mark.parametrize("placement", ["fused", "split"])
def test_filters_are_off_until_a_route_to_their_chain_switches_on_all_of_them(placement: str) -> None:
    bootstrap = compiled(WITH_OTHERS, placement)
    filters = manager(bootstrap, "gateway")["http_filters"][1:-2]
    assert {each["disabled"] for each in filters} == {True}
    of_chain = {
        chain: [each["name"] for each in filters if f"/{chain}/" in each["name"]]
        for chain in ("responses", "resources")
    }
    switched_on = {"@type": "type.googleapis.com/envoy.config.route.v3.FilterConfig", "config": {}}
    found = [(route["name"], route.get("typed_per_filter_config", {})) for route in routes(bootstrap, "gateway")]
    assert found == [
        (name, dict.fromkeys(of_chain[chain] if chain else [], switched_on))
        for name, chain in [
            ("health", None),
            ("upgrade", None),
            ("resources /v1/responses/{response_id}/input_items", "resources"),
            ("upstream /v1/embeddings", None),
            ("responses /v1/responses", "responses"),
            ("resources /v1/responses/{response_id}", "resources"),
            ("resources /ready", "resources"),
            ("resources /v1/responses", "resources"),
            ("resources /v1/conversations", "resources"),
            ("upstream /v1", None),
            ("not_found", None),
        ]
    ]
    loop = plan(gateway(WITH_OTHERS, placement), filters=FILTERS).loops[0][0].name
    below = [each["name"] for each in manager(bootstrap, f"loop/{loop}")["http_filters"][1:-2]]
    assert [route["typed_per_filter_config"] for route in routes(bootstrap, f"loop/{loop}")] == [
        dict.fromkeys(below, switched_on)
    ] * 2


HASTY = "upstreams: {default: {url: 'https://h/base', headers_timeout_s: 90, idle_timeout_s: 60}}"


def test_turn_goes_to_its_upstream_and_only_connecting_is_retried() -> None:
    bootstrap = compiled(HASTY, "fused")
    turn = next(route for route in routes(bootstrap, "gateway") if route["name"] == "responses /v1/responses")
    assert {key: value for key, value in turn.items() if key != "typed_per_filter_config"} == {
        "name": "responses /v1/responses",
        "match": {
            "path": "/v1/responses",
            "headers": [{"name": ":method", "string_match": {"safe_regex": {"regex": "POST"}}}],
        },
        "route": {
            "cluster": "upstream/default",
            "host_rewrite_literal": "h",
            "regex_rewrite": {"pattern": {"regex": "^/"}, "substitution": "/base/"},
            "timeout": "0s",
            "idle_timeout": "0s",
            "retry_policy": {
                "retry_on": "connect-failure,refused-stream",
                "num_retries": 2,
                "per_try_idle_timeout": "90s",
            },
        },
        "request_headers_to_add": [overwrite("accept-encoding", "identity")],
        "response_headers_to_add": [overwrite("x-upstream-request-id", "%RESP(x-request-id)%")],
    }


NESTED = """
upstreams: {default: {url: http://h, headers_timeout_s: 60, idle_timeout_s: 90}}
timeouts: {stream_idle_s: 30}
chains:
  responses: [{filter: tool_dispatch, loop: [{filter: tool_dispatch, loop: [{filter: upstream_round}]}]}]
"""


@pytest.mark.parametrize(
    ("name", "route", "silence"),
    [
        ("gateway", "responses /v1/responses", ("0s", "90s")),
        ("gateway", "upstream /v1", ("30s", None)),
        ("loop/responses/tool_dispatch", "responses /v1/responses", ("0s", "90s")),
        ("loop/responses/tool_dispatch-2", "responses /v1/responses", ("120s", "90s")),
    ],
)
def test_silence_is_limited_but_where_later_rounds_and_tools_may_run(
    name: str, route: str, silence: tuple[str, str | None]
) -> None:
    actions = [each["route"] for each in routes(compiled(NESTED, "split"), name) if each["name"] == route]
    found = {(action["idle_timeout"], action["retry_policy"].get("per_try_idle_timeout")) for action in actions}
    assert found == {silence}


def test_timers_of_the_listeners_are_those_of_the_gateway_file() -> None:
    text = f"{SHORTEST}timeouts: {{stream_idle_s: 30, request_s: 20, request_headers_s: 10}}"
    names = (
        "stream_idle_timeout",
        "stream_flush_timeout",
        "request_timeout",
        "request_headers_timeout",
        "delayed_close_timeout",
    )
    bootstrap = compiled(text, "fused")
    found = {
        listener: [manager(bootstrap, listener).get(name) for name in names]
        for listener in ("gateway", "loop/responses/0")
    }
    assert found == {
        "gateway": ["30s", "30s", "20s", "10s", None],
        "loop/responses/0": ["30s", "30s", None, "10s", "0s"],
    }


def test_loop_listener_has_the_routes_of_its_chain_and_no_way_past_them() -> None:
    found = [
        (route["name"], route["match"].get("path") or route["match"]["prefix"], route["route"]["cluster"])
        for route in routes(compiled(WITH_OTHERS, "split"), "loop/responses/tool_dispatch")
    ]
    assert found == [
        ("responses /v1/responses", "/v1/responses", "upstream/near"),
        ("responses /v1/responses", "/", "upstream/near"),
    ]


def test_https_upstream_is_verified_against_its_name_and_the_systems_authorities() -> None:
    far = cluster(compiled(WITH_OTHERS, "fused"), "upstream/far")
    options = far["typed_extension_protocol_options"]["envoy.extensions.upstreams.http.v3.HttpProtocolOptions"]
    assert (far["type"], far["transport_socket"], options["upstream_http_protocol_options"]) == (
        "STRICT_DNS",
        {
            "name": "envoy.transport_sockets.tls",
            "typed_config": {
                "@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext",
                "common_tls_context": {"validation_context": {"system_root_certs": {}}},
                "sni": "llm.example.com",
            },
        },
        {"auto_sni": True, "auto_san_validation": True},
    )


def test_addresses_are_static_and_names_are_resolved() -> None:
    bootstrap = compiled(WITH_OTHERS, "fused")
    types = {each["name"]: each["type"] for each in bootstrap["static_resources"]["clusters"]}
    assert types == {
        "workers": "STATIC",
        "upstream/near": "STATIC",
        "upstream/far": "STRICT_DNS",
        "upstream/far_address": "STATIC",
        "upstream/named": "STRICT_DNS",
        "foreign/responses/3": "STATIC",
        "foreign/responses/7": "STRICT_DNS",
    }


def test_workers_are_endpoints_of_one_cluster() -> None:
    workers = cluster(compiled(f"{SHORTEST}workers: 3", "fused"), "workers")
    endpoints = workers["load_assignment"]["endpoints"][0]["lb_endpoints"]
    assert [each["endpoint"]["address"]["pipe"]["path"] for each in endpoints] == [
        f"/run/attache/worker-{index}.sock" for index in range(3)
    ]


LEAST_REQUEST = "envoy.extensions.load_balancing_policies.least_request.v3.LeastRequest"


def test_stream_goes_to_the_worker_with_the_fewest() -> None:
    workers = cluster(compiled(SHORTEST, "fused"), "workers")
    assert workers["load_balancing_policy"]["policies"] == [
        {
            "typed_extension_config": {
                "name": "envoy.load_balancing_policies.least_request",
                "typed_config": {
                    "@type": f"type.googleapis.com/{LEAST_REQUEST}",
                    "selection_method": "FULL_SCAN",
                },
            }
        }
    ]


TWO_APIS = """
upstreams:
  near: {url: "http://near", headers_timeout_s: 20, idle_timeout_s: 10}
  chat: {url: "http://chat/base", api: chat_completions}
chains:
  responses: [{filter: validate}, {filter: tool_dispatch, loop: [{filter: upstream_round}]}]
routes:
  - {match: {path: /chat/v1/responses}, chain: responses, upstream: chat}
"""


@pytest.mark.parametrize(
    ("placement", "looping"),
    [
        ("fused", ["responses/0", "responses@near/0"]),
        ("split", ["responses/tool_dispatch", "responses@near/tool_dispatch"]),
    ],
)
def test_each_upstream_of_a_chain_has_a_loop_listener_that_leads_to_it_alone(
    placement: str, looping: list[str], tmp_path: Path
) -> None:
    bootstrap = compiled(TWO_APIS, placement)
    assert listener_names(bootstrap) == ["gateway", *(f"loop/{name}" for name in looping)]
    actions = {name: [each["route"] for each in routes(bootstrap, f"loop/{name}")] for name in looping}
    assert {
        name: {(each["cluster"], each["retry_policy"]["per_try_idle_timeout"]) for each in found}
        for name, found in actions.items()
    } == {looping[0]: {("upstream/chat", "600s")}, looping[1]: {("upstream/near", "20s")}}
    switched_on = {
        route["name"]: sorted(route.get("typed_per_filter_config", {}))
        for route in routes(bootstrap, "gateway")
        if route["name"].startswith("responses ")
    }
    names = filter_names(bootstrap, "gateway")
    assert switched_on == {
        "responses /chat/v1/responses": sorted(name for name in names if "/responses/" in name),
        "responses /v1/responses": sorted(name for name in names if "/responses@near/" in name),
    }
    accept(bootstrap, tmp_path / "bootstrap.yaml")
