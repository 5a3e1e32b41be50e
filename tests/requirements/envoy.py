"""Envoy and the filters in it: the protocol between them, and what the gateway file becomes."""

from __future__ import annotations

from requirements.requirement import Requirement, within
from requirements.sources import DESIGN, ENVOY, EXT_PROC, EXT_PROC_PROTO, HTTP2, TIMEOUTS, YAML, bug

_EXT_PROC = "tests/filters/extproc"
_COMPILE = "tests/envoy/compile"
_GATEWAY = "tests/envoy/gateway"

REQUIREMENTS = (
    Requirement(
        "envoy-session",
        EXT_PROC_PROTO,
        "One ext_proc stream is a state machine: any order of messages is legal or a declared error.",
        (f"{_EXT_PROC}/test_session.py",),
    ),
    Requirement(
        "envoy-wire",
        EXT_PROC_PROTO,
        "The wire messages are Envoy's, byte for byte.",
        (f"{_EXT_PROC}/test_wire.py",),
    ),
    Requirement(
        "envoy-facts",
        EXT_PROC,
        "What the design relies on holds in the Envoy that is used, intact bodies through chained filters among it.",
        (f"{_EXT_PROC}/test_envoy_facts.py",),
    ),
    Requirement(
        "envoy-http2",
        HTTP2,
        "HTTP/2 is spoken as the RFC has it: any legal conversation in any cut of the bytes, windows kept both ways.",
        (
            f"{_EXT_PROC}/http2/test_connection.py",
            f"{_EXT_PROC}/http2/test_flow_control.py",
            f"{_EXT_PROC}/http2/test_headers.py",
            f"{_EXT_PROC}/http2/test_against_h2.py",
        ),
    ),
    Requirement(
        "envoy-http2-refusals",
        HTTP2,
        "What is illegal, or a flood, ends the stream or the connection with the right code, and never raises.",
        (
            f"{_EXT_PROC}/http2/test_violations.py",
            f"{_EXT_PROC}/http2/test_floods.py",
            f"{_EXT_PROC}/http2/test_arbitrary_frames.py",
        ),
    ),
    Requirement(
        "envoy-host",
        DESIGN,
        "A segment is hosted with all its promises: limits, errors before and after the first event, clean-up.",
        (
            f"{_EXT_PROC}/test_host.py",
            f"{_EXT_PROC}/test_chain.py",
            f"{_EXT_PROC}/test_flow.py",
            f"{_EXT_PROC}/test_scope.py",
        ),
    ),
    Requirement(
        "envoy-transports",
        DESIGN,
        "Each transport serves the same: streams, health, deadlines and cancellation, an orderly drain; a stream that "
        "is broken or slow harms no other.",
        (f"{_EXT_PROC}/transport/", "tests/e2e/test_transports.py"),
    ),
    Requirement(
        "envoy-placements",
        DESIGN,
        "Split and fused placement behave the same, and other filters may stand between hosted ones.",
        ("tests/e2e/test_placements.py",),
    ),
    Requirement(
        "envoy-third-party",
        DESIGN,
        "A filter of a third party works above the loop and inside it, and is tested without Envoy.",
        (
            "tests/e2e/test_third_party_filter.py",
            "tests/filters/test_testing.py",
            "examples/acme-guardrail/tests/test_guardrail.py",
        ),
    ),
    Requirement(
        "envoy-plan",
        DESIGN,
        "A chain is cut into segments, each with its loop listener, as its placement and its entries say.",
        (f"{_COMPILE}/test_plan.py",),
    ),
    Requirement(
        "envoy-bootstrap",
        ENVOY,
        "Envoy accepts what any valid gateway compiles to, and it says what the gateway file says.",
        (f"{_COMPILE}/test_bootstrap.py", f"{_COMPILE}/test_messages.py", f"{_COMPILE}/test_sockets.py"),
    ),
    Requirement(
        "envoy-routes",
        ENVOY,
        "A real Envoy leads each request through the segment of its route and no other, and answers the rest itself.",
        (f"{_COMPILE}/test_real_envoy.py",),
    ),
    Requirement(
        "envoy-bypass",
        DESIGN,
        "What `bypass: stateless` lets past a chain, the chain would have passed on unchanged; nothing else gets past.",
        ("tests/e2e/test_bypass.py", f"{_COMPILE}/test_stateless.py"),
    ),
    Requirement(
        "envoy-models",
        DESIGN,
        "Envoy chooses the upstream of a whole turn by the model that the request names; an unknown one is 404.",
        ("tests/e2e/test_models.py",),
    ),
    Requirement(
        "envoy-version",
        bug("envoyproxy/envoy", 44605),
        "An Envoy that is too old for the placement is refused with the reason; the oldest ones are tested.",
        (f"{_COMPILE}/test_envoy_version.py", "tests/test_envoys.py"),
    ),
    Requirement(
        "envoy-timers",
        TIMEOUTS,
        "Silence is limited where nothing may be silent for long, by the timers of the gateway file.",
        within(
            f"{_COMPILE}/test_bootstrap.py",
            "test_silence_is_limited_but_where_later_rounds_and_tools_may_run",
            "test_timers_of_the_listeners_are_those_of_the_gateway_file",
        ),
    ),
    Requirement(
        "gateway-file-errors",
        bug("MervinPraison/PraisonAI", 3468),
        "A gateway file that cannot be used says file, line and key, and what would be right.",
        (f"{_GATEWAY}/test_load.py",),
    ),
    Requirement(
        "gateway-file-text",
        YAML,
        "The gateway file is YAML with variables, read with the line of everything in it.",
        (f"{_GATEWAY}/test_document.py", "tests/docs/test_gateway_files.py"),
    ),
)
