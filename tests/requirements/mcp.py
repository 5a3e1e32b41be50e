"""MCP servers: which may be used, how they are spoken to, and what becomes of what they answer."""

from __future__ import annotations

from requirements.requirement import Requirement, within
from requirements.sources import DESIGN, MCP, MCP_PROGRESS, bug

_MCP = "tests/core/tools/mcp"
_E2E = "tests/e2e/test_mcp_servers.py"
_SESSIONS = f"{_MCP}/test_sessions.py"
_TURNS = "tests/core/turn/test_mcp_turns.py"

REQUIREMENTS = (
    Requirement(
        "mcp-named-servers",
        DESIGN,
        "A server of the gateway file is declared by its label; its address and credentials are the operator's alone.",
        (
            f"{_MCP}/test_named_servers.py",
            "tests/core/types/test_mcp_servers.py",
            "tests/envoy/gateway/test_mcp_section.py",
            *within(
                _E2E,
                "test_named_servers_are_listed_and_called_by_their_labels_over_either_transport",
                "test_request_that_may_not_use_a_server_so_is_400",
            ),
        ),
        "OpenAI's API names its own servers by `connector_id`; here the operator's have a `server_label`.",
    ),
    Requirement(
        "mcp-server-that-fails",
        bug("meta-llama/llama-stack", 3107),
        "A server that fails to list or to be called, in whatever way and over either transport, is an item with an "
        "error; the model is told, the response completes, and no call is sent twice.",
        (
            "tests/core/turn/test_mcp_matrix.py",
            *within(
                _E2E,
                "test_call_that_fails_is_sent_once_and_is_an_item_with_an_error_that_the_model_is_told",
                "test_failure_that_a_tool_reports_and_a_server_that_refuses_connections_are_told_to_the_model",
                "test_server_that_fails_to_list_is_an_item_with_an_error_and_the_model_answers",
            ),
        ),
    ),
    Requirement(
        "mcp-progress",
        MCP_PROGRESS,
        "What a tool reports of its progress is a sign of life of its call, bounded in number; it buys no time.",
        (
            "tests/core/tools/test_running_call.py",
            "tests/core/turn/test_mcp_progress.py",
            *within(_E2E, "test_progress_of_a_call_reaches_a_streaming_client_before_its_result"),
        ),
        "OpenAI's API sends `response.mcp_call.in_progress` once; here each report that is told on is one more.",
    ),
    Requirement(
        "mcp-transports",
        MCP,
        "A server of either transport is spoken to over the one that it has, which is found out once; the older one "
        "sends nothing to another origin, and is bounded and pooled as the newer one is.",
        (f"{_MCP}/test_transports.py",),
    ),
    Requirement(
        "mcp-credentials",
        bug("BerriAI/litellm", 35678),
        "A credential for a server is shown to that server alone, whoever gave it, whatever becomes of the call, and "
        "also where the server repeats it.",
        (
            f"{_MCP}/test_results.py",
            *within(_E2E, "test_credentials_are_shown_to_their_server_alone_whatever_becomes_of_a_call"),
        ),
    ),
    Requirement(
        "mcp-schemas-and-names",
        bug("meta-llama/llama-stack", 3575),
        "A tool's schema reaches the model as it is, null read as absent, and any name leads back to the tool.",
        (
            *within(_TURNS, "test_tool_of_any_schema_and_name_is_told_as_it_is_and_called_as_it_is_named"),
            *within(
                "tests/core/tools/test_declarations.py",
                "test_schema_of_a_server_reaches_the_model_as_it_is_where_it_is_one",
            ),
        ),
    ),
    Requirement(
        "mcp-same-name-on-two-servers",
        bug("openai/openai-agents-python", 3401),
        "A call of a name that two servers have goes to the one that was meant, and the other is not contacted.",
        ("tests/core/tools/test_two_servers.py",),
    ),
    Requirement(
        "mcp-listed-once",
        bug("meta-llama/llama-stack", 4452),
        "Rounds and turns do not list a server's tools again, and the client is shown a list once.",
        (
            *within(_TURNS, "test_five_rounds_and_a_further_turn_list_once_and_show_the_list_once"),
            *within(_SESSIONS, "test_five_turns_list_once"),
        ),
    ),
    Requirement(
        "mcp-failure-is-data",
        bug("openai/openai-agents-python", 2249),
        "What a tool says of its failure, and structured content, reach the model; a failure does not end the turn.",
        (
            f"{_MCP}/test_results.py",
            *within(f"{_MCP}/test_failures.py", "test_failure_that_the_tool_reports_is_told_in_full"),
        ),
    ),
    Requirement(
        "mcp-session-mechanics",
        bug("modelcontextprotocol/python-sdk", 3257),
        "A server may have no event stream; one that forgot the session is asked again where that is safe; a session "
        "is opened and closed in one task.",
        within(
            _SESSIONS,
            "test_call_on_an_expired_session_is_not_repeated_and_the_next_gets_a_new_one",
            "test_closing_ends_calls_that_still_run_and_leaves_no_task",
            "test_event_stream_that_ends_at_once_is_not_asked_for_without_end",
            "test_expired_session_is_opened_again_once_for_a_list",
            "test_server_without_an_event_stream_is_used_all_the_same",
            "test_session_that_expires_twice_is_an_error",
        ),
    ),
    Requirement(
        "mcp-scale-and-side-effects",
        bug("sst/opencode", 33006),
        "More tools than a request may have are a 400 that names the remedy; no call is repeated by the gateway, and "
        "the same call without end is stopped.",
        (
            *within("tests/core/tools/test_registry.py", "test_too_many_tools_answer_400_and_name_the_remedy"),
            *within(
                "tests/core/turn/test_loop.py",
                "test_same_call_over_and_over_is_answered_with_an_error_and_the_turn_goes_on",
            ),
            *within(f"{_MCP}/test_failures.py", "test_call_that_fails_is_a_result_and_is_sent_once"),
        ),
    ),
)
