"""What stands behind the gateway: each inference server, with its oddities, and what its failures become."""

from __future__ import annotations

from requirements.requirement import Requirement, within
from requirements.sources import CHAT, DESIGN, HTTP_CODINGS, LLAMA_CPP, SGLANG, SSE, VLLM, bug

_DIALECTS = "tests/core/events/dialects"
_VLLM = f"{_DIALECTS}/test_vllm.py"
_DIRECT = f"{_DIALECTS}/test_vllm_direct.py"
_LLAMA = f"{_DIALECTS}/test_llama_cpp.py"
_WIRE = "tests/e2e/test_known_failures_wire.py"
_SERVERS = "tests/e2e/test_inference_servers.py"
_ROUND = "tests/core/turn/test_round.py"
_CHAT = "tests/e2e/test_chat_completions.py"
_CHAT_MESSAGES = "tests/core/turn/chat_completions/test_messages.py"

REQUIREMENTS = (
    Requirement(
        "server-dialects",
        DESIGN,
        "A server is recognised, or named in the gateway file; whichever it is, clients see the same.",
        (
            f"{_DIALECTS}/test_dialects.py",
            f"{_DIALECTS}/test_openai.py",
            *within(
                _SERVERS,
                "test_recognised_server_gives_the_same_response",
                "test_server_by_the_name_of_its_dialect_gives_the_same_response",
                "test_streams_of_all_servers_have_the_same_events",
            ),
            *within("tests/e2e/test_conformance.py", "test_recorded_stream_is_answered_as_the_api_would"),
        ),
    ),
    Requirement(
        "server-item-keys",
        VLLM,
        "Events belong to the item that their id, index or order says; ids that differ on the way become one.",
        (
            f"{_DIALECTS}/test_item_keys.py",
            *within(_VLLM, "test_upstream_ids_are_dropped_and_one_id_is_used_throughout"),
            *within(_DIRECT, "test_ids_of_the_stream_and_its_end_are_dropped_though_they_agree"),
        ),
    ),
    Requirement(
        "server-vllm",
        VLLM,
        "vLLM's Python server is read as it is, with Harmony and without.",
        (_VLLM,),
    ),
    Requirement(
        "server-vllm-ids",
        VLLM,
        "vLLM: ids may be bare hex or null, and stray fields may stand beside them.",
        within(
            _VLLM,
            "test_ids_of_any_form_are_not_shown",
            "test_null_id_and_stray_fields_in_a_finished_call_are_of_the_announced_one",
            "test_null_status_and_fields_that_are_not_a_messages_are_not_shown",
        ),
    ),
    Requirement(
        "server-vllm-reasoning",
        VLLM,
        "vLLM: reasoning_part events become content parts.",
        within(_VLLM, "test_part_events_of_vllm_reasoning_become_content_parts"),
    ),
    Requirement(
        "server-vllm-settings",
        VLLM,
        "vLLM: what it says of its own settings, a leaked text.format among them, is not shown.",
        within(_VLLM, "test_settings_of_the_servers_response_are_not_shown"),
    ),
    Requirement(
        "server-vllm-usage",
        VLLM,
        "vLLM: counts that the API does not have are not shown.",
        within(_VLLM, "test_usage_of_vllm_is_whole_and_nothing_more"),
    ),
    Requirement(
        "server-vllm-blank-messages",
        VLLM,
        "vLLM: messages of white space before a call are not shown.",
        within(_VLLM, "test_message_of_white_space_before_a_call_is_not_shown"),
    ),
    Requirement(
        "server-vllm-arguments",
        VLLM,
        "vLLM: streamed arguments count where the final ones differ in white space.",
        (
            *within(_VLLM, "test_streamed_arguments_count_and_not_the_final_ones"),
            "tests/core/events/test_json_texts.py",
        ),
    ),
    Requirement(
        "server-vllm-direct",
        VLLM,
        "vLLM's other front end is read as it is: no part events, [DONE] at the end.",
        (_DIRECT,),
    ),
    Requirement(
        "server-vllm-bogus-arguments",
        VLLM,
        "vLLM's other front end: the first delta of arguments is a bogus {} and is not shown.",
        within(
            _DIRECT,
            "test_first_argument_delta_that_is_bogus_is_not_shown",
            "test_recorded_bogus_argument_delta_is_not_shown",
            "test_call_without_arguments_keeps_its_empty_object",
        ),
    ),
    Requirement(
        "server-vllm-custom-calls",
        VLLM,
        "vLLM's other front end: a custom call without input events streams its input.",
        within(_DIRECT, "test_custom_call_without_input_events_streams_its_input"),
    ),
    Requirement(
        "server-llama-cpp",
        LLAMA_CPP,
        "llama.cpp is read as it is: nothing is numbered, lifecycle events have three fields, errors an integer code.",
        (_LLAMA,),
    ),
    Requirement(
        "server-sglang",
        SGLANG,
        "SGLang is read as its recordings and its documentation show it.",
        (f"{_DIALECTS}/test_sglang.py",),
    ),
    Requirement(
        "server-markup-in-text",
        bug("vllm-project/vllm", 36435),
        "Markup of a call that a server's parser left in a text is text: it is shown and never run.",
        (
            *within(_VLLM, "test_markup_of_a_model_whose_parser_is_off_is_text_and_no_call"),
            *within(_SERVERS, "test_markup_of_a_call_in_a_text_is_shown_and_never_run"),
        ),
    ),
    Requirement(
        "server-done-in-text",
        SSE,
        "[DONE] ends nothing unless it is all of an event's data, and event: lines are not needed.",
        (
            *within(_WIRE, "test_stream_without_event_lines_and_with_the_end_marker_in_its_text_is_read_whole"),
            *within(f"{_DIALECTS}/test_dialects.py", "test_done_marker_is_only_a_marker_when_it_is_the_whole_payload"),
        ),
    ),
    Requirement(
        "server-private-events",
        bug("router-for-me/CLIProxyAPI", 6007),
        "Events that only one provider has are not passed on.",
        within(_WIRE, "test_events_that_only_one_provider_has_are_not_passed_on"),
    ),
    Requirement(
        "server-other-api",
        bug("vllm-project/semantic-router", 2446),
        "Chunks of the Chat Completions API where a response is expected are an error, and never passed on.",
        within(_WIRE, "test_chunks_of_another_api_are_never_passed_on"),
    ),
    Requirement(
        "server-only-completion-is-success",
        bug("Azure/azure-sdk-for-python", 49073),
        "Only a server's explicit completion is success, whatever the HTTP status was.",
        (
            f"{_DIALECTS}/test_outcomes.py",
            *within(_WIRE, "test_stream_that_begins_with_a_failure_is_failed_and_stored_as_failed"),
            *within("tests/e2e/test_errors.py", "test_failure_within_a_stream_ends_it_as_failed"),
        ),
    ),
    Requirement(
        "server-errors",
        bug("vllm-project/agentic-api", 250),
        "An HTTP error of a server keeps its status where the client can act on it, and its headers for a retry.",
        (
            f"{_DIALECTS}/test_http_error.py",
            *within(_SERVERS, "test_refusal_before_the_answer_keeps_its_status_and_words"),
        ),
    ),
    Requirement(
        "server-compressed-answers",
        HTTP_CODINGS,
        "Servers are asked for answers that are not compressed; one that is compressed all the same is a clear error.",
        (
            *within(_ROUND, "test_compressed_answer_is_502_for_nobody_asked_for_one"),
            *within(_WIRE, "test_compressed_answer_that_nobody_asked_for_is_an_error_and_never_garbage"),
            *within("tests/e2e/test_headers_and_errors.py", "test_model_is_asked_for_an_answer_that_is_not_compressed"),
        ),
    ),
    Requirement(
        "server-round",
        DESIGN,
        "One round with a server is a valid stream of its own, whether or not the server streamed.",
        (_ROUND,),
    ),
    Requirement(
        "server-waits",
        DESIGN,
        "A server is waited for as long as its upstream's settings say, before its answer and between its bytes.",
        (
            "tests/core/turn/test_patience.py",
            *within(
                "tests/e2e/test_headers_and_errors.py",
                "test_answer_that_falls_silent_before_its_first_event_is_504",
                "test_model_that_does_not_begin_to_answer_is_504",
            ),
            *within("tests/e2e/test_two_upstreams.py", "test_each_upstream_is_waited_for_as_long_as_it_says"),
        ),
    ),
    Requirement(
        "server-any-bytes",
        DESIGN,
        "Whatever a server sends becomes a valid answer or a clear error that is the server's fault, never a hang.",
        (
            "tests/fuzz/test_upstream_answers.py",
            "tests/fuzz/test_tool_loop.py",
            *within(
                "tests/e2e/test_fuzz.py",
                "test_any_request_and_any_answer_leave_a_gateway_that_lives_and_logs_no_traceback",
            ),
        ),
    ),
    Requirement(
        "server-failures-are-failures",
        DESIGN,
        "A server that dies or fails is a failure to the client, whichever server it is.",
        within(
            _SERVERS, "test_failure_after_the_answer_began_fails_the_response", "test_server_that_dies_is_a_failure"
        ),
    ),
    Requirement(
        "server-report",
        DESIGN,
        "Each failure of a server is one line in the log: its status, its code and its request id, never its words.",
        ("tests/filters/extproc/test_round_report.py",),
    ),
    Requirement(
        "server-several",
        DESIGN,
        "A gateway may have several upstreams, each with its API, its dialect and its patience.",
        ("tests/e2e/test_two_upstreams.py",),
    ),
    Requirement(
        "chat-requests",
        CHAT,
        "With `api: chat_completions`, a request is translated whole, or refused naming what cannot be expressed.",
        ("tests/core/turn/chat_completions/",),
    ),
    Requirement(
        "chat-answers",
        CHAT,
        "With `api: chat_completions`, answers and streams become what the Responses API would have given.",
        (
            "tests/core/events/chat_completions/",
            "tests/fuzz/test_chat_completions.py",
        ),
    ),
    Requirement(
        "chat-client-tools",
        bug("router-for-me/CLIProxyAPI", 4414),
        "All tools of a client are functions to a chat server, and to the client what it declared.",
        within(
            _CHAT,
            "test_call_of_any_tool_of_the_client_is_continued_by_its_output",
            "test_custom_tool_is_called_with_free_text_and_answered_by_the_client",
            "test_recorded_request_of_codex_is_answered_and_continued",
            "test_tools_in_a_namespace_are_called_and_answered_by_the_client",
        ),
        "OpenAI holds a custom tool's input to its grammar; a chat server cannot, so the model is told of it.",
    ),
    Requirement(
        "chat-functions-only",
        DESIGN,
        "Where no tool loop made functions of them, other tools and their calls are refused, with the filter to add.",
        (
            *within(
                "tests/core/turn/chat_completions/test_request.py",
                "test_tool_that_is_no_function_is_refused_with_the_chain_that_serves_it",
            ),
            *within(
                _CHAT_MESSAGES,
                "test_call_of_what_is_no_function_is_refused_with_the_chain_that_serves_it",
                "test_call_whose_namespace_is_null_is_a_call_of_a_function",
            ),
            *within(
                _CHAT,
                "test_function_is_called_in_a_chain_without_tool_dispatch",
                "test_what_is_no_function_is_refused_in_a_chain_without_tool_dispatch",
            ),
        ),
    ),
    Requirement(
        "chat-system-message",
        bug("ai-dynamo/dynamo", 10206),
        "Instructions and the system messages in front are one message, because templates refuse or lose a second one.",
        within(
            _CHAT_MESSAGES,
            "test_instructions_and_developers_in_front_are_one_system_message",
            "test_later_system_message_stays_in_its_place_under_the_role_that_is_set",
        ),
    ),
    Requirement(
        "chat-empty-arguments",
        bug("vllm-project/vllm", 19419),
        "A call without arguments has an empty object for them, unless the answer was cut off before they came.",
        within(
            "tests/core/events/chat_completions/test_reader.py",
            "test_call_that_is_cut_off_before_its_arguments_has_none",
            "test_call_in_pieces_is_one_call",
        ),
    ),
    Requirement(
        "server-invalid-arguments",
        bug("vllm-project/vllm", 48922),
        "A call whose arguments are no JSON does not spoil the conversation: the server is sent them in an object.",
        (
            *within("tests/core/turn/test_model_items.py", "test_arguments_of_a_call_are_always_a_json_object"),
            *within(_CHAT, "test_turn_goes_on_after_a_call_whose_arguments_are_no_json"),
        ),
    ),
    Requirement(
        "chat-plain-text",
        bug("BerriAI/litellm", 6642),
        "Content that is all text is a string, because there are servers that read nothing else.",
        within(_CHAT_MESSAGES, "test_content_is_a_string_where_it_is_all_text_and_parts_otherwise"),
    ),
    Requirement(
        "chat-turns",
        CHAT,
        "A server of Chat Completions serves whole turns: text, images, reasoning, tools, structured output.",
        (_CHAT,),
    ),
)
