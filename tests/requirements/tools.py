"""Tools: what is declared, what runs here, and what the model and the client are told of it."""

from __future__ import annotations

from requirements.requirement import Requirement, within
from requirements.sources import DESIGN, FUNCTIONS, MCP, MCP_TOOLS, REMOTE_MCP, bug

_TURNS = "tests/e2e/test_turns.py"
_MCP = "tests/core/tools/mcp"

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
        "A tool type of another package is found by its entry point, keeps one contract, and runs within a turn.",
        (
            "tests/core/tools/test_contract.py",
            "tests/core/tools/test_installed.py",
            "examples/acme-lookup/tests/test_lookup.py",
        ),
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
        "tool-mcp-direct",
        DESIGN,
        "A call without the SDK, on a server of the stateless protocol, says and reads what the SDK would.",
        (f"{_MCP}/test_direct_calls.py",),
    ),
    Requirement(
        "tool-mcp-approval",
        REMOTE_MCP,
        "An MCP tool that wants approval is refused, because nobody could give it.",
        within("tests/e2e/test_errors.py", "test_mcp_tool_that_wants_approval_is_refused"),
        "OpenAI asks the client for approval; here only `require_approval: never` is served yet.",
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
        "tool-scheduling",
        FUNCTIONS,
        "Calls of a round run together, bounded in number and time, with results in their order.",
        ("tests/core/tools/test_scheduler.py",),
    ),
)
