"""Errors, limits and interruptions: what a client sees when something goes wrong."""

from __future__ import annotations

from requirements.requirement import Requirement, within
from requirements.sources import CONVERSATIONS, DESIGN, ERRORS, HTTP, LOCAL_REPLIES, STREAMING, bug

_ERRORS = "tests/e2e/test_errors.py"
_HEADERS = "tests/e2e/test_headers_and_errors.py"
_LEFT = "tests/e2e/test_interruptions.py"
_LIMITS = "tests/e2e/test_limits.py"
_DISCONNECTS = "tests/e2e/test_disconnects.py"
_CHAIN = "tests/e2e/test_chain_without_loop.py"
_LOOP = "tests/core/turn/test_loop_streams.py"
_STREAMS = "tests/e2e/test_streams_whole.py"
_EDGES = "tests/e2e/test_known_failures_edges.py"

REQUIREMENTS = (
    Requirement(
        "error-real-status",
        ERRORS,
        "A failure before the first byte is a real HTTP status, streaming or not.",
        (
            *within(_ERRORS, "test_error_of_the_model_server_before_its_first_byte_is_a_real_status"),
            *within(
                _HEADERS,
                "test_turn_whose_upstream_fails_before_the_first_event_is_a_real_status",
                "test_upstream_that_speaks_no_http_is_502",
                "test_upstream_with_as_many_requests_as_it_may_have_is_503",
            ),
            *within(_HEADERS, "test_silent_upstream_of_a_route_without_a_chain_is_504"),
            *within(_LEFT, "test_model_that_dies_before_it_answers_is_a_real_error"),
            *within(_LOOP, "test_refusal_before_the_first_sign_is_an_http_error"),
            *within(_STREAMS, "test_refusal_before_the_interval_is_over_is_an_http_error"),
            *within(
                _CHAIN,
                "test_model_that_dies_before_it_answers_is_502_and_nothing_is_stored",
                "test_model_that_is_silent_for_too_long_is_504_and_nothing_is_stored",
            ),
        ),
    ),
    Requirement(
        "error-retry",
        ERRORS,
        "A 429 keeps its retry-after, and SDKs try again after a failure that says so.",
        within(_HEADERS, "test_sdk_tries_again_after_a_failure_before_the_first_byte"),
    ),
    Requirement(
        "error-after-first-byte",
        bug("open-webui/open-webui", 29628),
        "A failure after the first byte is response.failed, stored as failed, and cannot be continued.",
        (
            *within(
                _LEFT,
                "test_model_that_dies_midstream_is_a_failed_response_that_cannot_be_continued",
                "test_stream_that_just_ends_is_a_failed_response_that_cannot_be_continued",
            ),
            *within(
                _CHAIN,
                "test_model_that_dies_midstream_is_a_failed_response_that_is_stored",
                "test_stream_that_stops_is_a_failed_response_that_is_stored",
            ),
            *within(_LOOP, "test_refusal_after_the_first_sign_is_a_failed_response"),
            *within(_STREAMS, "test_refusal_after_a_sign_of_life_is_a_failed_response"),
        ),
    ),
    Requirement(
        "error-terminal-event",
        bug("ollama/ollama", 14600),
        "A stream that began always has a terminal event, whatever broke.",
        (
            *within(
                "tests/filters/extproc/test_chain.py",
                "test_stream_that_stops_anywhere_ends_in_failure",
                "test_events_of_any_shape_end_in_one_terminal_event",
            ),
            *within("tests/core/turn/test_execute.py", "test_model_that_dies_midstream_ends_as_failed"),
        ),
    ),
    Requirement(
        "error-garbage-is-502",
        ERRORS,
        "Garbage from a model server is 502, never the client's fault, and is not shown.",
        (
            *within(_ERRORS, "test_garbage_of_the_model_server_is_502_and_not_the_clients_fault"),
            *within(
                "tests/e2e/test_items_on_their_way.py",
                "test_control_characters_that_are_no_json_are_a_bad_answer_and_nothing_is_stored",
            ),
        ),
    ),
    Requirement(
        "error-shape",
        LOCAL_REPLIES,
        "Every error is the API's error object as JSON, also where Envoy answers itself.",
        (
            *within(_HEADERS, "test_what_envoy_answers_itself_is_an_error_of_the_api"),
            *within(
                _ERRORS,
                "test_path_outside_the_api_is_404_in_the_apis_shape",
                "test_response_id_of_another_kind_is_400",
                "test_unknown_response_is_404",
            ),
            *within(_LEFT, "test_gateway_in_front_of_an_upstream_that_is_down_answers_in_the_apis_shape"),
        ),
    ),
    Requirement(
        "error-passed-on",
        bug("envoyproxy/ai-gateway", 2553),
        "An error body that Envoy passes on is left as it is.",
        within(_HEADERS, "test_error_body_that_envoy_passes_on_is_left_as_it_is"),
    ),
    Requirement(
        "error-request-id",
        ERRORS,
        "Every answer carries x-request-id, and the model server is asked under the same one.",
        (
            *within(
                _HEADERS,
                "test_every_answer_has_a_request_id_of_its_own_or_the_clients",
                "test_model_is_asked_under_the_clients_request_id",
            ),
            *within("tests/e2e/test_openai_sdk.py", "test_raw_response_has_the_request_id"),
        ),
    ),
    Requirement(
        "error-stalled-body",
        bug("vllm-project/agentic-api", 286),
        "An error whose body stalls is answered all the same.",
        ("tests/e2e/test_stalled_upstream.py",),
    ),
    Requirement(
        "error-unserved-state",
        CONVERSATIONS,
        "Endpoints that are not served and conversations that are not there are 404, and the upstream sees nothing.",
        (
            "tests/e2e/test_state_paths.py",
            *within("tests/e2e/test_items_on_their_way.py", "test_conversation_is_404_and_nothing_is_asked"),
        ),
    ),
    Requirement(
        "limit-request-bytes",
        bug("vllm-project/agentic-api", 260),
        "A body over the limit is 413 in the API's shape, however it is cut or compressed; one at the limit passes.",
        (
            *within(
                _ERRORS,
                "test_body_over_the_limit_is_refused_with_413",
                "test_large_body_within_the_limit_reaches_the_model",
            ),
            *within(_LIMITS, "test_request_over_the_limit_is_refused"),
            *within(_EDGES, "test_body_over_the_limit_is_413_however_it_is_cut"),
        ),
    ),
    Requirement(
        "limit-bombs",
        "https://www.rfc-editor.org/rfc/rfc8878#name-security-considerations",
        "A small compressed body that becomes enormous is 413, and costs no more than the limit.",
        within(_EDGES, "test_compressed_request_that_becomes_enormous_is_413_in_little_memory"),
    ),
    Requirement(
        "limit-request-items",
        DESIGN,
        "The number of input items is bounded by a setting; one more is refused.",
        (
            *within(_LIMITS, "test_items_of_a_request_are_limited"),
            *within(
                "tests/e2e/test_requests_whole.py",
                "test_as_many_input_items_as_the_setting_allows_are_answered_and_one_more_is_refused",
            ),
        ),
    ),
    Requirement(
        "limit-upstream-answers",
        DESIGN,
        "An upstream's JSON answer, and one line of its stream, are bounded by settings; one byte more is an error.",
        within(
            _LIMITS,
            "test_json_answer_at_the_limit_is_taken_and_one_byte_more_is_502",
            "test_line_of_a_stream_at_the_limit_is_taken",
            "test_line_of_a_stream_over_the_limit_is_502_before_the_first_event",
        ),
    ),
    Requirement(
        "limit-retained",
        bug("vllm-project/agentic-api", 288),
        "What is retained of a response is bounded over all rounds, counted by what is kept, not by how it was cut.",
        (
            *within(
                _LOOP,
                "test_any_cut_has_the_same_sum",
                "test_log_probabilities_have_the_same_sum_however_they_are_cut",
                "test_log_probabilities_have_the_same_sum_however_they_are_cut",
                "test_bound_is_on_all_rounds_together_and_ends_the_turn",
                "test_response_at_the_bound_completes_and_one_past_it_fails_however_it_is_cut",
                "test_result_past_the_bound_fails_the_turn_with_its_call_incomplete",
            ),
            *within(
                _STREAMS,
                "test_response_over_the_bound_fails_however_it_was_cut",
                "test_response_within_the_bound_completes_however_it_was_cut",
            ),
        ),
    ),
    Requirement(
        "limit-is-terminal",
        STREAMING,
        "Going over a limit after the first event is one clear failure, and no event follows it.",
        within(
            _LIMITS,
            "test_stream_over_a_limit_after_its_first_event_ends_as_failed",
            "test_streamed_answer_over_the_limit_fails_and_is_stored_as_failed",
        ),
    ),
    Requirement(
        "limit-conversations",
        DESIGN,
        "The limit of a request bounds what a client sends, not the conversation or the rounds that follow from it.",
        within(
            _LIMITS,
            "test_conversation_longer_than_the_limit_of_a_request_goes_on",
            "test_rounds_longer_than_the_limit_of_a_request_go_on",
        ),
    ),
    Requirement(
        "limit-documented",
        DESIGN,
        "Every bound is a named setting with a documented default.",
        ("tests/docs/test_limits.py",),
    ),
    Requirement(
        "left-client",
        bug("BerriAI/litellm", 36275),
        "A client that leaves ends the upstream's request and tool calls at once, and nothing is stored as complete.",
        within(
            _LEFT,
            "test_client_that_leaves_while_a_tool_runs_ends_the_call",
            "test_client_that_leaves_while_the_model_streams_ends_the_upstream_request",
        ),
    ),
    Requirement(
        "left-stored",
        bug("meta-llama/llama-stack", 4738),
        "By setting, a turn whose client left is stored as cancelled with what was said, or goes on and is stored at "
        "its end; a later GET never shows it complete with nothing in it.",
        (
            *within(
                _DISCONNECTS,
                "test_client_that_stays_gets_the_answer_that_is_stored",
                "test_tool_call_is_cancelled_and_shown_as_incomplete",
                "test_turn_goes_on_from_wherever_its_client_left_it",
                "test_turn_goes_on_to_its_end_and_is_stored",
                "test_turn_is_stored_as_cancelled_with_what_was_said",
                "test_turn_of_which_nothing_was_said_is_stored_as_cancelled_without_output",
                "test_turn_that_fails_without_its_client_is_stored_as_failed",
                "test_turn_that_is_not_to_be_stored_ends_and_leaves_nothing",
            ),
            "tests/core/turn/test_departure.py",
        ),
    ),
    Requirement(
        "left-conversation",
        DESIGN,
        "The conversation of a turn whose client left is free at once, and holds all of the turn or nothing.",
        (
            *within(_DISCONNECTS, "test_conversation_is_free_again_and_has_nothing_of_the_turn"),
            *within(
                "tests/core/turn/test_conversation_hold.py",
                "test_turn_that_is_cancelled_while_it_gets_its_conversation_gives_it_back",
            ),
        ),
    ),
    Requirement(
        "left-bounds",
        DESIGN,
        "Turns that go on without clients are bounded in time and number, and a gateway that stops waits for them.",
        (
            *within(
                _DISCONNECTS,
                "test_gateway_that_is_stopped_waits_for_turns_without_clients",
                "test_turn_for_which_there_is_no_room_is_stored_as_cancelled",
                "test_turn_over_the_time_limit_is_stored_as_cancelled",
            ),
            "tests/filters/extproc/test_unattended.py",
            "tests/filters/extproc/test_host_unattended.py",
        ),
    ),
    Requirement(
        "left-errors",
        DESIGN,
        "A client that waits for JSON gets HTTP errors, also where its turn is streamed below so that it can be kept.",
        within(_DISCONNECTS, "test_client_that_waits_for_json_gets_an_http_error_all_the_same"),
    ),
    Requirement(
        "left-worker",
        DESIGN,
        "A killed worker costs its own turns and one more at most; without workers nothing reaches the upstream.",
        within(
            _LEFT,
            "test_killed_worker_fails_its_turn_and_one_more_at_most",
            "test_without_processors_the_client_gets_5xx_and_the_upstream_sees_nothing",
        ),
    ),
    Requirement(
        "left-silence",
        DESIGN,
        "A turn may be silent in any round, and a worker busy for seconds, without being given up.",
        ("tests/e2e/test_silence.py",),
    ),
    Requirement(
        "left-nothing",
        DESIGN,
        "After load nothing is left: no task, no socket, no memory that grows with the number of turns.",
        ("tests/e2e/test_leaks.py",),
    ),
    Requirement(
        "health",
        HTTP,
        "The gateway says whether it lives, and whether a turn would succeed.",
        within(_ERRORS, "test_health_and_readiness"),
    ),
)
