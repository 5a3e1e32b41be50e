"""Tools: what is declared, what runs here, and what the model and the client are told of it."""

from __future__ import annotations

from requirements.requirement import Requirement, within
from requirements.sources import DESIGN, FUNCTIONS, MCP, MCP_TOOLS, REMOTE_MCP, SHELL, bug

_TURNS = "tests/e2e/test_turns.py"
_ROUNDS = "tests/e2e/test_tool_rounds.py"
_MCP = "tests/core/tools/mcp"
_APPROVALS = "tests/core/turn/test_approvals.py"

REQUIREMENTS = (
    Requirement(
        "tool-declarations",
        REMOTE_MCP,
        "Declarations become function tools for the model; unusable ones are refused before anybody is asked.",
        ("tests/core/tools/test_declarations.py", "tests/core/tools/test_registry.py"),
    ),
    Requirement(
        "tool-arguments",
        FUNCTIONS,
        "Arguments plainly not of a tool's schema are told to the model and reach no tool; valid ones always do.",
        ("tests/core/tools/test_arguments.py",),
    ),
    Requirement(
        "tool-other-packages",
        DESIGN,
        "A tool type of another package is found by its entry point, has its settings in the gateway file, keeps one "
        "contract, and runs within a turn.",
        (
            "tests/core/tools/test_contract.py",
            "tests/core/tools/test_installed.py",
            "tests/e2e/test_third_party_tool.py",
            "tests/envoy/gateway/test_tools.py",
            "examples/acme-lookup/tests/test_lookup.py",
        ),
    ),
    Requirement(
        "tool-shell",
        SHELL,
        "Where the operator grants a shell, the gateway runs its commands within their bounds and leaves nothing of "
        "them behind; where nobody does, none.",
        ("tests/core/tools/shell/", "tests/e2e/test_shell.py"),
        "A container lasts for one turn, and is set up by the operator: what a request would have of one is refused.",
    ),
    Requirement(
        "tool-repeated-call",
        DESIGN,
        "The same call with the same arguments over and over is answered with an error; the turn keeps all its work.",
        within(
            "tests/core/turn/test_loop.py",
            "test_bound_on_the_same_call_is_a_setting_and_holds_within_a_round",
            "test_round_limit_ends_incomplete_and_keeps_all_work",
            "test_same_call_over_and_over_is_answered_with_an_error_and_the_turn_goes_on",
        ),
    ),
    Requirement(
        "tool-every-call-of-a-round",
        bug("vllm-project/vllm", 57791),
        "Every call of a round is run and has its output, in the order of the calls.",
        within("tests/core/turn/test_loop.py", "test_items_keep_the_models_order_around_gateway_calls"),
    ),
    Requirement(
        "tool-batch-against-the-wish",
        bug("praxis-proxy/ai", 990),
        "Several calls from a server that was asked for one at a time run one after the other, and none is refused; "
        "one that fails or hangs harms no other, and all count against the request's bound.",
        (
            *within(
                "tests/core/turn/test_loop.py",
                "test_calls_over_the_budget_are_not_run_and_the_model_is_told",
                "test_calls_that_were_not_to_be_parallel_run_one_after_the_other",
                "test_hanging_call_times_out_and_its_siblings_have_their_results",
            ),
            *within("tests/core/tools/test_scheduler.py", "test_bug_in_a_tool_is_a_result_and_its_text_is_not_logged"),
        ),
    ),
    Requirement(
        "tool-mixed-ownership",
        bug("praxis-proxy/ai", 1027),
        "Beside a client's call the gateway's run; the next turn answers the client's alone; unknown names never run.",
        within(
            "tests/core/turn/test_loop.py",
            "test_clients_call_beside_a_gateway_call_ends_the_turn_and_its_output_alone_continues_it",
            "test_unknown_function_is_the_clients_and_ends_the_turn",
        ),
    ),
    Requirement(
        "tool-limit-keeps-work",
        bug("praxis-proxy/ai", 294),
        "A model that never stops calling ends `incomplete` with all that was done.",
        (
            *within("tests/core/turn/test_loop.py", "test_round_limit_ends_incomplete_and_keeps_all_work"),
            *within(_TURNS, "test_model_that_never_stops_calling_ends_incomplete_after_ten_rounds"),
        ),
    ),
    Requirement(
        "tool-malformed-arguments",
        bug("MervinPraison/PraisonAI", 4075),
        "Arguments that are no JSON object, or not of the schema, are an error to the model, reach no tool, and count.",
        (
            *within(
                "tests/core/turn/test_loop.py",
                "test_arguments_that_are_not_of_the_schema_reach_no_tool_and_count",
                "test_malformed_arguments_are_an_error_to_the_model_and_reach_no_tool",
                "test_no_arguments_are_an_empty_object",
            ),
            *within("tests/core/tools/test_scheduler.py", "test_malformed_arguments_are_told_and_not_dispatched"),
        ),
    ),
    Requirement(
        "tool-choice-names",
        bug("openai/openai-agents-python", 263),
        "A choice may name a tool of any type; it is forced once, by the name that the model knows.",
        within(
            "tests/core/turn/test_loop.py",
            "test_choice_of_a_tool_that_is_no_function_names_the_one_that_stands_for_it",
            "test_forced_choice_holds_for_the_first_round_only",
        ),
    ),
    Requirement(
        "tool-one-call-id",
        bug("vercel/ai", 12178),
        "A call has one id for its whole life, streamed and in the history, and is executed by one side only.",
        (
            *within("tests/core/tools/test_model_view.py", "test_call_id_is_the_same_for_the_item_s_whole_life"),
            *within(
                "tests/core/turn/test_loop.py",
                "test_clients_call_beside_a_gateway_call_ends_the_turn_and_its_output_alone_continues_it",
            ),
        ),
    ),
    Requirement(
        "tool-client-executed",
        FUNCTIONS,
        "Custom tools, namespaces, tool searches, shells and patches are functions to the model, and to the client "
        "what the API says, streamed where OpenAI streams; calls of the past are told under the same names.",
        (
            "tests/core/tools/test_client_types.py",
            "tests/core/tools/test_custom_input.py",
            "tests/core/turn/test_client_tool_recordings.py",
            "tests/e2e/test_client_tools.py",
        ),
        "A grammar is told to the model and not enforced; commands of the shell are streamed once they are all known.",
    ),
    Requirement(
        "tool-recordings",
        FUNCTIONS,
        "What clients saw of OpenAI's tools is played again with the same items and events.",
        ("tests/e2e/test_tool_recordings.py",),
        "Past `max_tool_calls` OpenAI ran a call more; one without a required argument reaches no MCP server here; "
        "citations of a streamed text come together, before its end.",
    ),
    Requirement(
        "tool-names",
        FUNCTIONS,
        "Names that the model sees are valid and different, and lead back to the tool that was meant.",
        ("tests/core/tools/test_names.py", "tests/core/tools/test_two_servers.py"),
    ),
    Requirement(
        "tool-history",
        FUNCTIONS,
        "The model is told of calls of the past as function calls with one id for life.",
        ("tests/core/tools/test_model_view.py",),
    ),
    Requirement(
        "tool-mcp-turn",
        REMOTE_MCP,
        "An MCP tool is listed, called and its result told to the model within one response.",
        within(
            _TURNS,
            "test_listed_tools_are_not_listed_again_in_the_next_turn",
            "test_mcp_tool_is_listed_called_and_its_result_told_to_the_model",
            "test_several_calls_of_a_round_have_results_in_the_order_of_the_calls",
        ),
    ),
    Requirement(
        "tool-approval-asked",
        bug("smg-project/smg", 159),
        "A call runs without approval only where its declaration plainly says so; else the user is asked, by default.",
        (
            *within(
                "tests/core/tools/test_declarations.py",
                "test_approval_is_needed_for_every_tool_that_is_not_plainly_exempt",
                "test_approval_is_needed_where_a_declaration_does_not_say",
            ),
            *within(_APPROVALS, "test_call_that_wants_approval_is_not_run_and_the_model_is_not_asked_again"),
        ),
    ),
    Requirement(
        "tool-approval-round-trip",
        bug("praxis-proxy/ai", 637),
        "An approval is given once, by its tenant, for the call that was asked for; what is approved runs once, and "
        "the model is told of it in its place. A denial is told with its reason.",
        (
            _APPROVALS,
            "tests/core/turn/test_pending_approvals.py",
            "tests/core/tools/test_approval_fingerprint.py",
            "tests/core/tools/test_approval_history.py",
            "tests/e2e/test_approvals.py",
        ),
        "A response that is not stored may not ask, because nothing could continue it.",
    ),
    Requirement(
        "tool-approval-in-the-body",
        bug("praxis-proxy/ai", 839),
        "The request for an approval is in the body that the client gets, streamed or not, whatever filters there are.",
        within("tests/e2e/test_approvals.py", "test_request_is_in_what_the_client_gets_and_in_what_is_stored"),
    ),
    Requirement(
        "tool-mcp-direct",
        DESIGN,
        "A call without the SDK, on a server of the stateless protocol, says and reads what the SDK would.",
        (f"{_MCP}/test_direct_calls.py",),
    ),
    Requirement(
        "tool-mixed-rounds",
        FUNCTIONS,
        "A round with calls of both kinds runs those of the gateway and returns the client's.",
        within(_TURNS, "test_mixed_round_runs_gateway_calls_and_returns_the_clients"),
    ),
    Requirement(
        "tool-loop",
        DESIGN,
        "The loop runs calls and asks again until the model is done, the client must act, or a bound is reached.",
        (
            "tests/core/turn/test_loop.py",
            *within(_TURNS, "test_model_that_never_stops_calling_ends_incomplete_after_ten_rounds"),
        ),
    ),
    Requirement(
        "tool-forced-choice",
        FUNCTIONS,
        "A forced choice holds for the first round only.",
        within(_TURNS, "test_forced_tool_choice_is_auto_after_the_call_was_made"),
    ),
    Requirement(
        "tool-failures",
        bug("openai/openai-agents-python", 2249),
        "A tool that fails, or a server that cannot be reached, is told to the model in full, and the turn goes on.",
        (
            f"{_MCP}/test_failures.py",
            *within(
                "tests/e2e/test_interruptions.py",
                "test_tool_that_fails_is_told_to_the_model_and_the_turn_goes_on",
                "test_unreachable_tool_server_is_an_item_with_an_error_and_the_turn_goes_on",
            ),
        ),
    ),
    Requirement(
        "tool-results",
        MCP_TOOLS,
        "What a tool says, in whatever form, becomes one bounded text.",
        (f"{_MCP}/test_results.py",),
    ),
    Requirement(
        "tool-sessions",
        MCP,
        "Sessions with tool servers are shared, renewed, bounded, and apart by credentials; a call is sent once.",
        (f"{_MCP}/test_sessions.py",),
    ),
    Requirement(
        "tool-any-answer",
        MCP,
        "Whatever a tool server answers is a listing and a result, or an error in them.",
        (f"{_MCP}/test_any_answer.py",),
    ),
    Requirement(
        "tool-rounds-of-many-calls",
        bug("vllm-project/vllm", 57791),
        "Calls that hang, fail, are too many or the same again leave one response, in order, with an output for each.",
        within(
            _ROUNDS,
            "test_five_calls_of_which_one_hangs_and_one_fails_are_one_response_in_the_order_of_the_calls",
            "test_result_of_any_text_is_told_shown_and_stored_alike",
            "test_round_of_more_calls_than_are_allowed_runs_these_and_answers_each",
        ),
    ),
    Requirement(
        "tool-loop-detector",
        bug("ComposioHQ/composio", 3654),
        "The same call over and over is told to the model as an error and reaches no tool, over all rounds.",
        within(_ROUNDS, "test_same_call_in_round_after_round_is_run_no_more_and_the_turn_keeps_its_work"),
    ),
    Requirement(
        "tool-kinds-in-one-round",
        bug("vercel/ai", 12178),
        "Calls of the gateway's and of the client's tools in one round are each executed by one side, under one id.",
        within(_ROUNDS, "test_calls_of_every_kind_in_one_round_keep_their_order_and_the_client_answers_its_own"),
    ),
    Requirement(
        "tool-not-run-here",
        DESIGN,
        "A tool of OpenAI's that nothing here runs is refused by name, unless the operator leaves such tools out.",
        within(_ROUNDS, "test_tool_that_nothing_here_runs_is_refused_by_name"),
    ),
    Requirement(
        "tool-scheduling",
        FUNCTIONS,
        "Calls of a round run together, bounded in number and time, with results in their order.",
        ("tests/core/tools/test_scheduler.py",),
    ),
)
