"""Gateway files: what they mean, and what is said about those that cannot be used."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from attache_core.errors import ConfigError
from attache_core.secret import REVEALING
from attache_envoy.gateway import Gateway, default_gateway, load_gateway, parse_gateway, with_options
from attache_envoy.gateway.model import Address
from gateway_fakes import FILTERS

URL = "http://127.0.0.1:8000"
REFUSED = yaml.safe_load((Path(__file__).parent / "refused_files.yaml").read_text(encoding="utf-8"))
NATIVE_TYPE = "type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua"


def parsed(text: str) -> Gateway:
    return parse_gateway(text, "gateway.yaml", filters=FILTERS, environ={})


def refusal(text: str) -> list[str]:
    with pytest.raises(ConfigError) as refused:
        parsed(text)
    return refused.value.message.splitlines()


def test_upstream_alone_is_a_complete_file() -> None:
    gateway = parsed(f"upstream: {URL}")
    assert gateway == default_gateway(URL, filters=FILTERS)
    assert gateway.model_dump(mode="json", exclude={"mcp", "storage"}, exclude_none=True) == {
        "listen": "127.0.0.1:8080",
        "placement": "fused",
        "workers": 2,
        "transport": "lean",
        "upstreams": {
            "default": {
                "url": URL,
                "api": "responses",
                "models": [],
                "dialect": "auto",
                "headers_timeout_s": 600,
                "idle_timeout_s": 600,
                "connect_timeout_s": 5.0,
                "keepalive_s": 4.0,
                "max_requests": 65_536,
            }
        },
        "chains": {
            "responses": [
                {"filter": "validate", "isolate": False},
                {"filter": "persist", "isolate": False},
                {"filter": "rehydrate", "isolate": False},
                {
                    "filter": "tool_dispatch",
                    "isolate": False,
                    "loop": [{"filter": "upstream_round", "isolate": False}],
                },
            ],
            "resources": [{"filter": "resources", "isolate": False}],
        },
        "routes": [
            {"match": {"path": "/v1/responses", "methods": ["POST"]}, "chain": "responses"},
            {"match": {"path": "/v1/responses/{response_id}", "methods": ["GET"]}, "chain": "resources"},
            {"match": {"path": "/ready", "methods": ["GET"]}, "chain": "resources"},
            {"match": {"prefix": "/v1/responses", "methods": []}, "chain": "resources"},
            {"match": {"prefix": "/v1/conversations", "methods": []}, "chain": "resources"},
            {"match": {"prefix": "/v1", "methods": []}},
        ],
        "limits": {
            "max_request_bytes": 10 * 2**20,
            "max_turn_bytes": 128 * 2**20,
            "max_reply_bytes": 64 * 2**20,
            "max_connections": 10_000,
            "max_streams": 65_536,
            "max_header_kib": 60,
            "max_bypass_bytes": 64 * 2**10,
            "connection_buffer_bytes": 2**20,
        },
        "timeouts": {
            "stream_idle_s": 600,
            "request_s": 300,
            "request_headers_s": 30,
            "worker_connect_s": 1,
        },
        "tools": {},
    }


@pytest.mark.parametrize(
    ("listen", "mcp", "allowed"),
    [
        ("127.0.0.1:8080", "{}", True),
        ("localhost:0", "{}", True),
        ("'[::1]:8080'", "{}", True),
        ("0.0.0.0:8080", "{}", False),
        ("'[::]:8080'", "{list_ttl_s: 1}", False),
        ("127.0.0.1:8080", "{allow_private_addresses: false}", False),
        ("0.0.0.0:8080", "{allow_private_addresses: true}", True),
    ],
)
def test_private_mcp_addresses_are_allowed_on_loopback_unless_said_otherwise(
    listen: str, mcp: str, allowed: bool
) -> None:
    gateway = parsed(f"upstream: {URL}\nlisten: {listen}\nmcp: {mcp}")
    assert gateway.mcp.allow_private_addresses is allowed


def test_private_mcp_addresses_follow_the_option_listen() -> None:
    gateway = with_options(default_gateway(URL, filters=FILTERS), listen="0.0.0.0:80")
    assert gateway.mcp.allow_private_addresses is False
    assert with_options(gateway, listen="127.0.0.1:80").mcp.allow_private_addresses is True


@pytest.mark.parametrize(
    ("listen", "address"),
    [
        ("127.0.0.1:0", Address("127.0.0.1", 0)),
        ("localhost:80", Address("127.0.0.1", 80)),
        ("[::1]:8080", Address("::1", 8080)),
        ("0.0.0.0:65535", Address("0.0.0.0", 65_535)),
    ],
)
def test_listen_is_an_address_and_a_port(listen: str, address: Address) -> None:
    assert parsed(f"upstream: {URL}\nlisten: '{listen}'").address == address


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://h", ("http://h", "h", "", 80, False)),
        ("http://h:8000/", ("http://h:8000", "h:8000", "", 8000, False)),
        ("http://h/v1", ("http://h", "h", "", 80, False)),
        ("http://h/v1/", ("http://h", "h", "", 80, False)),
        ("https://h/openai/v1", ("https://h/openai", "h", "/openai", 443, True)),
        ("https://h:444/a/b/", ("https://h:444/a/b", "h:444", "/a/b", 444, True)),
        ("http://[::1]:8000/v1", ("http://[::1]:8000", "[::1]:8000", "", 8000, False)),
        ("http://h/v10", ("http://h/v10", "h", "/v10", 80, False)),
    ],
)
def test_v1_at_the_end_of_a_url_means_the_same_as_none(url: str, expected: tuple[str, str, str, int, bool]) -> None:
    upstream = parsed(f"upstream: {url}").upstreams["default"]
    assert (upstream.url, upstream.authority, upstream.prefix, upstream.port, upstream.tls) == expected


def test_chain_of_the_file_replaces_the_default_one_of_its_name() -> None:
    gateway = parsed(f"upstream: {URL}\nchains: {{responses: [{{filter: guard, words: [a]}}]}}")
    assert gateway.chains["responses"][0].model_dump(exclude_unset=True) == {"filter": "guard", "words": ["a"]}
    assert list(gateway.chains) == ["responses", "resources"]


def test_routes_of_the_file_come_first_and_replace_those_with_their_match() -> None:
    gateway = parsed(
        f"""
upstreams: {{a: {{url: {URL}}}, b: {{url: {URL}}}}}
routes:
  - {{match: {{prefix: /v1/embeddings}}, upstream: b}}
  - {{match: {{path: /v1/responses, methods: [POST]}}, chain: responses, upstream: b}}
"""
    )
    found = [
        (route.match.path or route.match.prefix, route.chain, gateway.upstream_of(route)) for route in gateway.routes
    ]
    assert found == [
        ("/v1/embeddings", None, "b"),
        ("/v1/responses", "responses", "b"),
        ("/v1/responses/{response_id}", "resources", "a"),
        ("/ready", "resources", "a"),
        ("/v1/responses", "resources", "a"),
        ("/v1/conversations", "resources", "a"),
        ("/v1", None, "a"),
    ]


def test_upstream_named_default_is_the_default_one() -> None:
    assert parsed(f"upstreams: {{a: {{url: {URL}}}, default: {{url: {URL}}}}}").default_upstream == "default"


def test_storage_is_a_url_or_a_section_with_one() -> None:
    assert parsed(f"upstream: {URL}\nstorage: sqlite:///x.db") == parsed(
        f"upstream: {URL}\nstorage: {{url: 'sqlite:///x.db'}}"
    )
    gateway = parsed(f"upstream: {URL}\nstorage: {{url: 'sqlite:///x.db', migrate: verify, max_connections: 3}}")
    assert (gateway.storage.url.reveal(), gateway.storage.migrate) == ("sqlite:///x.db", "verify")
    changed = with_options(gateway, storage="postgresql://h/d").storage
    assert (changed.url.reveal(), changed.migrate, changed.max_connections) == ("postgresql://h/d", "verify", 3)


@pytest.mark.parametrize(
    "storage",
    [
        "postgresql://attache:canary-7f3a@db.example/attache?sslmode=require",
        "{url: 'postgresql://attache:canary-7f3a@/attache?sslpassword=canary-7f3a', max_connections: 3}",
    ],
)
def test_password_of_the_store_is_shown_nowhere_and_reaches_the_workers(storage: str) -> None:
    gateway = parsed(f"upstream: {URL}\nstorage: {storage}")
    shown = [repr(gateway), str(gateway.model_dump()), gateway.model_dump_json()]
    assert [text for text in shown if "canary" in text] == []
    assert "postgresql://attache:[redacted]@" in gateway.model_dump_json()
    assert Gateway.model_validate_json(gateway.model_dump_json(context={REVEALING: True})) == gateway


@pytest.mark.parametrize(
    "storage",
    [
        "postgresql://attache:canary-7f3a@db.example",
        "postgresql://attache:canary-7f3a/@db.example/attache",
        "mysql://attache:canary-7f3a@db.example/attache",
        "['postgresql://attache:canary-7f3a@db.example/attache']",
        "{url: ['postgresql://attache:canary-7f3a@db.example/attache']}",
        "{url: 'postgresql://attache:canary-7f3a@db.example/attache', passwort: canary-7f3a}",
    ],
)
def test_message_about_a_store_does_not_repeat_its_password(storage: str) -> None:
    (line,) = refusal(f"upstream: {URL}\nstorage: {storage}")
    assert line.startswith("gateway.yaml:2: storage")
    assert "canary" not in line


def test_options_replace_what_the_file_says() -> None:
    gateway = parsed(
        "upstreams: {vllm: {url: http://h, connect_timeout_s: 3}, other: {url: http://o}}\nworkers: 7\n"
        "limits: {max_streams: 9}"
    )
    changed = with_options(
        gateway,
        upstream="http://new:1/v1",
        listen="0.0.0.0:0",
        placement="split",
        workers=1,
        storage="sqlite:///x.db",
    )
    assert changed == parsed(
        "upstreams: {vllm: {url: http://new:1, connect_timeout_s: 3}, other: {url: http://o}}\nworkers: 1\n"
        "limits: {max_streams: 9}\nlisten: 0.0.0.0:0\nplacement: split\nstorage: sqlite:///x.db"
    )
    assert with_options(gateway) == gateway


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("upstream", "h:8000", "command line: --upstream: 'h:8000' is not a base URL such as http://127.0.0.1:8000."),
        (
            "listen",
            "example.net:80",
            (
                "command line: --listen: 'example.net:80' is not an IP address and a port, such as 127.0.0.1:8080 or "
                "[::]:8080."
            ),
        ),
        ("placement", "fuse", "command line: --placement: input should be 'fused' or 'split', not 'fuse'."),
        ("workers", 0, "command line: --workers: input should be greater than or equal to 1, not 0."),
        (
            "storage",
            "a.db",
            (
                "command line: --storage: this is not a URL; use sqlite:///FILE, or sqlite:////FILE with an absolute "
                "path, or postgresql://USER:PASSWORD@HOST/DATABASE."
            ),
        ),
    ],
)
def test_option_that_cannot_be_used_is_refused_by_its_name(option: str, value: object, message: str) -> None:
    with pytest.raises(ConfigError, match=f"^{re.escape(message)}$"):
        with_options(default_gateway(URL, filters=FILTERS), **{option: value})  # type: ignore[arg-type] # any option


def test_upstream_that_cannot_be_used_is_refused_without_a_file() -> None:
    with pytest.raises(ConfigError, match=r"^command line: --upstream: 'x' is not a base URL"):
        default_gateway("x", filters=FILTERS)


@pytest.mark.parametrize("refused", REFUSED, ids=lambda refused: refused["file"][-40:])
def test_file_that_cannot_be_used_says_where_and_what_would_be_right(refused: dict[str, str]) -> None:
    assert refusal(refused["file"]) == refused["says"].splitlines()


def test_unknown_key_of_mcp_is_told_the_one_that_is_meant() -> None:
    (message,) = refusal("upstream: http://h\nmcp: {list_ttl: 1}")
    assert message.startswith("gateway.yaml:2: mcp.list_ttl: unknown key. Did you mean list_ttl_s? Known keys: allow_")


def test_problems_of_all_kinds_are_told_together_in_the_order_of_the_file() -> None:
    messages = refusal(
        "workers: 0\nupstream: http://h\nchains:\n  responses:\n    - filter: validat\n"
        "routes:\n  - {match: {path: /a}, upstream: nowhere}\nworkers: 1\ncolour: red\n"
    )
    assert [message.split(": ")[:2] for message in messages] == [
        ["gateway.yaml:1", "workers"],
        ["gateway.yaml:5", "chains.responses[0].filter"],
        ["gateway.yaml:7", "routes[0].upstream"],
        ["gateway.yaml:8", "workers"],
        ["gateway.yaml:9", "colour"],
    ]


def test_file_that_is_missing_is_refused_by_its_path(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as refused:
        load_gateway(tmp_path / "none.yaml", filters=FILTERS)
    assert refused.value.message == f"{tmp_path}/none.yaml: the gateway file cannot be read: No such file or directory."


def test_file_is_read_from_its_path(tmp_path: Path) -> None:
    path = tmp_path / "gateway.yaml"
    path.write_text(f"upstream: {URL}")
    assert load_gateway(path, filters=FILTERS) == default_gateway(URL, filters=FILTERS)


filter_entries = st.sampled_from(
    [{"filter": "validate"}, {"filter": "persist", "isolate": True}, {"filter": "guard", "words": ["a", "b"]}]
)
other_entries = st.sampled_from(
    [{"envoy": {"name": "lua", "typed_config": {"@type": NATIVE_TYPE}}}, {"ext_proc": {"address": "unix:/tmp/x.sock"}}]
)
entry_lists = st.recursive(
    st.lists(filter_entries | other_entries, min_size=1, max_size=4),
    lambda inner: st.tuples(st.lists(filter_entries, max_size=2), inner).map(
        lambda parts: [*parts[0], {"filter": "tool_dispatch", "max_rounds": 3, "loop": parts[1]}]
    ),
    max_leaves=3,
)
gateway_values = st.fixed_dictionaries(
    {"upstreams": st.sampled_from([{"a": {"url": URL}}, {"a": {"url": "https://h/p"}, "b": {"url": URL}}])},
    optional={
        "listen": st.sampled_from(["0.0.0.0:1", "[::1]:0"]),
        "placement": st.sampled_from(["fused", "split"]),
        "workers": st.integers(1, 9),
        "transport": st.sampled_from(["lean", "grpcio"]),
        "chains": st.fixed_dictionaries({"responses": entry_lists}),
        "routes": st.sampled_from([[], [{"match": {"prefix": "/x"}, "chain": "responses"}]]),
        "mcp": st.sampled_from([{}, {"allow_private_addresses": True}]),
    },
)


@settings(max_examples=30, deadline=None)
@given(gateway_values)
def test_gateway_dumped_in_any_way_is_read_back_as_the_same(value: dict[str, object]) -> None:
    gateway = parsed(yaml.safe_dump(value))
    assert Gateway.model_validate_json(gateway.model_dump_json()) == gateway
    assert parsed(yaml.safe_dump(gateway.model_dump(mode="json", exclude_none=True))) == gateway
    assert with_options(gateway) == gateway


@pytest.mark.parametrize(
    "chain",
    ["", "chains: {responses: [{filter: chat_completions}]}", "chains: {responses: [{filter: theirs}]}"],
    ids=["default", "asks over chat itself", "somebody else's"],
)
def test_upstream_that_speaks_only_chat_completions_may_stand_behind_what_asks_for_it(chain: str) -> None:
    gateway = parsed(f"upstreams: {{default: {{url: {URL}, api: chat_completions}}}}\n{chain}")
    assert gateway.upstreams["default"].api == "chat_completions"
    assert gateway.upstreams_of("responses") == ("default",)


@pytest.mark.parametrize(
    ("section", "problem"),
    [
        ("{api_key: hunter2}", "web_search.provider: this key is required."),
        ("{provider: brave, api_key: [hunter2]}", "web_search.api_key: a key is a text that is not empty."),
        ("{provider: brave}", "web_search: brave needs `api_key`, such as `${BRAVE_API_KEY}`."),
        (
            "{provider: searxng, url: 'http://me:hunter2@h/'}",
            "web_search.url: a URL such as `http://searxng:8080`, without a login and a query, is expected.",
        ),
    ],
)
def test_section_of_web_search_that_cannot_work_says_why_and_shows_no_key(section: str, problem: str) -> None:
    with pytest.raises(ConfigError) as raised:
        parse_gateway(f"upstream: http://h\nweb_search: {section}\n", "gateway.yaml")
    assert str(raised.value) == f"gateway.yaml:2: {problem}"
