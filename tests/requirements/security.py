"""Who is believed, what is kept secret, and what may be reached."""

from __future__ import annotations

from requirements.requirement import Requirement, within
from requirements.sources import EDGE, FETCH_CORS, HTTP_CONNECTION, MCP, REMOTE_MCP, bug

_HEADERS = "tests/e2e/test_headers_and_errors.py"
_SESSIONS = "tests/core/tools/mcp/test_sessions.py"

REQUIREMENTS = (
    Requirement(
        "secure-internal-headers",
        bug("vllm-project/agentic-api", 107),
        "Internal headers of a client are not believed, and none reaches a client or an upstream.",
        (
            *within("tests/e2e/test_errors.py", "test_internal_headers_of_a_client_are_not_believed"),
            *within(_HEADERS, "test_headers_of_one_connection_and_internal_ones_of_a_client_stop_here"),
            *within(
                "tests/envoy/compile/test_real_envoy.py",
                "test_internal_headers_pass_neither_from_a_client_nor_to_it",
            ),
        ),
    ),
    Requirement(
        "secure-connection-headers",
        HTTP_CONNECTION,
        "Headers of one connection stop at the gateway; of an upstream's error, only what a client acts on goes on.",
        (
            *within(_HEADERS, "test_error_of_an_upstream_keeps_what_a_client_acts_on_and_nothing_internal"),
            "tests/filters/extproc/test_response_headers.py",
        ),
    ),
    Requirement(
        "secure-secrets",
        bug("BerriAI/litellm", 35678),
        "Credentials of MCP tools and of requests are in no answer, no log, no database, and not told to the model.",
        (
            *within(
                "tests/e2e/test_known_failures_edges.py",
                "test_secrets_of_a_request_are_neither_in_the_database_nor_in_the_log_nor_told_upstream",
            ),
            *within("tests/e2e/test_turns.py", "test_secrets_of_an_mcp_tool_are_neither_echoed_nor_stored"),
            *within("tests/core/types/test_response.py", "test_new_response_never_holds_what_a_client_keeps_secret"),
            f"{_SESSIONS}::TestCredentials",
        ),
    ),
    Requirement(
        "secure-store-url",
        bug("BerriAI/litellm", 35678),
        "The password of the store's URL is in no message, no log, no dump of the settings, and reaches the workers.",
        (
            *within(
                "tests/envoy/gateway/test_load.py",
                "test_message_about_a_store_does_not_repeat_its_password",
                "test_password_of_the_store_is_shown_nowhere_and_reaches_the_workers",
            ),
            *within(
                "tests/core/storage/test_migrate_each.py",
                "test_server_that_cannot_be_used_is_named_without_its_password",
            ),
            *within("tests/core/storage/test_postgresql.py", "test_login_that_is_refused_answers_store_error"),
            *within("tests/core/storage/test_url.py", "test_shown_url_has_no_password"),
        ),
    ),
    Requirement(
        "secure-addresses",
        bug("modelcontextprotocol/servers", 4838),
        "A tool server's address is resolved once, checked and pinned; private ones only where the operator allows it.",
        ("tests/core/tools/mcp/test_addresses.py",),
    ),
    Requirement(
        "secure-redirects",
        MCP,
        "A redirect of a tool server is not followed, and its target not contacted.",
        within(_SESSIONS, "test_redirect_is_not_followed_and_its_target_not_contacted"),
    ),
    Requirement(
        "secure-tls",
        REMOTE_MCP,
        "A tool server proves to be the one that its URL names.",
        ("tests/core/tools/mcp/test_tls.py",),
    ),
    Requirement(
        "secure-pages",
        FETCH_CORS,
        "A web page cannot post to the gateway without having asked for it first.",
        within("tests/e2e/test_limits.py", "test_page_cannot_post_without_being_asked_for"),
    ),
    Requirement(
        "secure-fail-closed",
        bug("envoyproxy/envoy", 45220),
        "With no worker to ask, or one that fails, a request is answered 5xx and the upstream sees nothing.",
        within(
            "tests/envoy/compile/test_real_envoy.py",
            "test_request_without_workers_is_answered_503_and_the_upstream_sees_nothing",
            "test_worker_that_fails_is_answered_503_and_the_upstream_sees_nothing",
        ),
    ),
    Requirement(
        "secure-edge",
        EDGE,
        "Requests that are malformed, too slow, or have an escaped slash in their path go no further than Envoy.",
        within(
            "tests/envoy/compile/test_real_envoy.py",
            "test_headers_over_the_limit_are_answered_431",
            "test_path_with_an_escaped_slash_is_refused",
            "test_request_that_does_not_arrive_is_answered_408",
            "test_request_that_is_not_http_is_answered_400_without_asking_a_worker",
        ),
    ),
)
