"""What a client may send, and what becomes of it."""

from __future__ import annotations

from requirements.requirement import Requirement, within
from requirements.sources import API, CREATE, ERRORS, FUNCTIONS, HTTP_CODINGS, JSON, bug

_TYPES = "tests/core/types"
_WHOLE = "tests/e2e/test_requests_whole.py"
_ITEMS = "tests/e2e/test_items_on_their_way.py"
_WIRE = "tests/e2e/test_known_failures_wire.py"
_EDGES = "tests/e2e/test_known_failures_edges.py"

REQUIREMENTS = (
    Requirement(
        "request-parameters",
        CREATE,
        "Every parameter of the API is handled here, sent to the model server or refused by name, as a table says.",
        (
            f"{_TYPES}/test_documented_parameters.py",
            *within(
                _WHOLE,
                "test_every_parameter_that_is_sent_reaches_the_model_server_unchanged",
                "test_request_that_cannot_be_answered_is_refused_before_the_model_is_asked",
            ),
        ),
    ),
    Requirement(
        "request-unknown-parameters",
        bug("ai-dynamo/frontend-crates", 207),
        "A parameter that only the model server understands reaches it unchanged, with state and without.",
        (
            "tests/core/turn/test_model_request.py",
            *within("tests/e2e/test_turns.py", "test_model_server_is_asked_without_any_state_of_ours"),
            *within(_ITEMS, "test_server_is_sent_what_the_client_sent_and_no_more"),
        ),
        "OpenAI refuses unknown parameters; inference servers have their own, and clients of them rely on those.",
    ),
    Requirement(
        "request-nothing-added",
        CREATE,
        "The model server is sent nothing that the client did not send, but that it is to keep nothing.",
        (
            *within(_WHOLE, "test_bare_request_gets_nothing_added_but_that_the_server_is_to_store_nothing"),
            *within("tests/core/turn/test_round.py", "test_model_is_asked_for_nothing_that_the_gateway_keeps"),
        ),
    ),
    Requirement(
        "request-validation",
        ERRORS,
        "What is wrong with a request is answered 400 with OpenAI's message, type, param (a path) and code.",
        (
            f"{_TYPES}/test_request.py",
            f"{_TYPES}/test_items.py",
            *within("tests/e2e/test_errors.py", "test_bad_request_is_refused_as_openai_refuses_it"),
        ),
    ),
    Requirement(
        "request-limits-of-another-api",
        bug("ai-dynamo/frontend-crates", 207),
        "A parameter of Chat Completions is refused with the name of its successor, never ignored.",
        (
            *within(f"{_TYPES}/test_request.py", "test_validate_create_with_a_chat_parameter_names_the_right_one"),
            *within(_WIRE, "test_limit_of_another_api_is_refused_and_not_ignored"),
        ),
    ),
    Requirement(
        "request-metadata",
        CREATE,
        "Metadata of up to 16 pairs of 64 and 512 characters comes back as it was sent, also from the store.",
        within(_WIRE, "test_largest_metadata_is_echoed_as_it_came_and_stored"),
    ),
    Requirement(
        "request-unknown-items",
        bug("vllm-project/agentic-api", 253),
        "An item or content part of an unknown type is refused by name, never dropped.",
        within(_WIRE, "test_what_the_gateway_does_not_know_of_an_input_is_refused_by_name_and_never_dropped"),
    ),
    Requirement(
        "request-json",
        JSON,
        "A body that is not one JSON object is refused with the reason; one that is, keeps every digit and character.",
        (
            *within("tests/e2e/test_errors.py", "test_body_that_is_not_a_json_object_is_refused"),
            *within(
                _WHOLE,
                "test_body_that_is_no_json_object_is_refused_with_the_reason",
                "test_large_integers_keep_their_digits_and_of_a_repeated_key_the_last_counts",
                "test_large_integers_keep_their_digits_in_the_answer_and_in_the_history",
            ),
        ),
    ),
    Requirement(
        "request-unusual-text",
        JSON,
        "A NUL or a lone surrogate anywhere survives the whole trip or is refused at once, and never fails late.",
        (
            *within(
                _WHOLE,
                "test_nul_and_lone_surrogates_survive_the_whole_trip",
                "test_nul_or_lone_surrogate_where_a_grammar_rules_is_refused_at_once",
                "test_reference_by_an_id_with_a_nul_is_not_found",
            ),
            *within(_ITEMS, "test_any_text_of_a_model_is_delivered_stored_and_sent_again"),
            *within("tests/e2e/test_turns.py", "test_instructions_reasoning_and_thoughts_survive_unusual_text"),
        ),
    ),
    Requirement(
        "request-any-json",
        CREATE,
        "Whatever is sent as a request is answered whole or refused in the API's shape: no exception's text, no hang.",
        (
            "tests/fuzz/test_requests.py",
            *within(
                "tests/e2e/test_fuzz.py",
                "test_any_request_and_any_answer_leave_a_gateway_that_lives_and_logs_no_traceback",
            ),
        ),
    ),
    Requirement(
        "request-tools",
        FUNCTIONS,
        "Tool declarations and tool_choice are checked as OpenAI checks them.",
        (f"{_TYPES}/test_tools.py",),
    ),
    Requirement(
        "request-hosted-tools",
        CREATE,
        "A hosted tool that does not run here is refused by name, or left out with a header that names it, as set.",
        (
            *within("tests/e2e/test_errors.py", "test_tool_type_that_is_not_run_here_is_refused_by_name"),
            *within(
                _WHOLE,
                "test_choice_of_an_omitted_tool_is_refused_by_name",
                "test_hosted_tools_that_are_omitted_are_named_in_a_header_and_never_sent",
                "test_hosted_tools_that_are_omitted_are_named_on_errors_as_well",
                "test_hosted_tools_that_are_omitted_are_named_when_the_gateway_runs_others",
            ),
            "tests/filters/builtin/test_validate.py",
        ),
        "OpenAI runs its hosted tools; this gateway has none of them, and says so instead of answering without.",
    ),
    Requirement(
        "request-client-tools",
        bug("sgl-project/sglang", 35216),
        "Tools of any kind that the client itself runs (custom, namespaces, …) reach the model as they were declared.",
        (
            *within(_WHOLE, "test_tool_of_another_kind_that_is_the_clients_is_sent_as_a_function"),
            *within(
                _EDGES,
                "test_output_of_a_call_may_be_a_list_of_parts",
            ),
        ),
    ),
    Requirement(
        "request-item-kinds",
        API,
        "Every item kind of the API is accepted as input and told to the model server in a form that it understands.",
        (
            "tests/core/turn/test_model_items.py",
            *within(
                _ITEMS,
                "test_items_of_hosted_tools_are_told_as_calls_and_kept_as_they_are",
                "test_item_that_cannot_be_told_is_refused_by_name",
            ),
        ),
    ),
    Requirement(
        "request-foreign-ids",
        bug("router-for-me/CLIProxyAPI", 4641),
        "Ids on input are optional; foreign ones are accepted, made valid, and never collide with others.",
        within(_ITEMS, "test_foreign_ids_reach_the_server_in_its_grammar_and_stay_apart"),
    ),
    Requirement(
        "request-replayed-reasoning",
        bug("openai/codex", 1233),
        "Reasoning that a client sends back, with its id or without, stays beside the item that it led to.",
        within(_EDGES, "test_replayed_reasoning_stays_beside_what_follows_it"),
    ),
    Requirement(
        "request-output-as-input",
        bug("openai/openai-agents-python", 1789),
        "The whole output of a response may be sent back as input, with store left on.",
        (
            *within("tests/e2e/test_turns.py", "test_whole_output_may_be_sent_back_as_input_with_store_left_on"),
            *within("tests/e2e/test_openai_sdk.py", "test_output_appended_to_input_is_accepted_with_store_left_on"),
        ),
    ),
    Requirement(
        "request-references",
        API,
        "An item reference, in each of its forms, is the stored item, of this turn's tenant, in its place.",
        (
            "tests/core/turn/test_references.py",
            *within(
                _ITEMS,
                "test_reference_is_the_stored_item_and_later_turns_have_it_too",
                "test_reference_of_a_turn_that_is_not_stored_is_the_stored_item",
                "test_reference_to_a_call_pairs_with_its_output",
                "test_unknown_reference_is_404_and_nothing_is_asked_or_stored",
                "test_item_of_a_failed_turn_is_not_found",
            ),
        ),
    ),
    Requirement(
        "request-pending-calls",
        FUNCTIONS,
        "Calls and outputs that do not belong together are refused as OpenAI refuses them.",
        ("tests/core/turn/test_pending_calls.py",),
    ),
    Requirement(
        "request-content-codings",
        HTTP_CODINGS,
        "Bodies compressed with zstd, gzip or br, and with several of them, are decoded.",
        (
            "tests/filters/extproc/test_content_coding.py",
            "tests/filters/extproc/test_codec.py",
            *within(
                "tests/e2e/test_limits.py",
                "test_request_at_the_limit_is_answered_and_reaches_the_model_decoded",
                "test_request_that_cannot_be_decoded_is_refused",
            ),
        ),
    ),
)
