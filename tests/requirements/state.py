"""What is remembered: turns, their order, and the database they are in."""

from __future__ import annotations

from requirements.requirement import Requirement, within
from requirements.sources import DESIGN, STATE, bug

_TURNS = "tests/e2e/test_turns.py"
_POSTGRESQL = "tests/e2e/test_postgresql.py"
_STORAGE = "tests/core/storage"
_RETENTION = "tests/e2e/test_retention.py"
_STORED = "tests/e2e/test_stored_responses.py"
_CONTINUATIONS = "tests/e2e/test_continuations.py"
_REHYDRATE = "tests/core/turn/test_rehydrate.py"

REQUIREMENTS = (
    Requirement(
        "state-continuation",
        STATE,
        "previous_response_id continues a response: the model is sent every item of every ancestor, in order.",
        (
            _REHYDRATE,
            *within(_TURNS, "test_turn_that_continues_another_sends_the_whole_conversation"),
            *within("tests/e2e/test_chain_without_loop.py", "test_turn_and_its_continuation_are_answered"),
        ),
    ),
    Requirement(
        "state-instructions",
        bug("vllm-project/vllm", 37697),
        "Instructions of an earlier turn are not carried over.",
        within(_TURNS, "test_turn_that_continues_another_sends_the_whole_conversation"),
    ),
    Requirement(
        "state-calls-in-history",
        bug("vllm-project/vllm", 43244),
        "Calls and their outputs are part of the history, those of the gateway as a call and its output.",
        within(
            _TURNS,
            "test_function_call_is_answered_by_the_client_in_a_continuation",
            "test_mcp_call_of_an_earlier_turn_is_told_to_the_model_as_call_and_output",
        ),
    ),
    Requirement(
        "state-forks",
        STATE,
        "Two turns may continue the same one, and share its history only.",
        within(_TURNS, "test_two_turns_may_continue_the_same_one"),
    ),
    Requirement(
        "state-store-false",
        STATE,
        "A turn with store: false leaves nothing, and may still continue from one that was stored.",
        within(_TURNS, "test_turn_that_is_not_stored_leaves_nothing_and_may_still_continue"),
    ),
    Requirement(
        "state-stored-before-told",
        bug("praxis-proxy/ai", 937),
        "A turn is stored before its terminal event is released, and never told to be complete when it is not.",
        (
            "tests/core/turn/test_persist.py",
            *within("tests/core/turn/test_round.py", "test_what_follows_the_terminal_event_is_not_read"),
        ),
    ),
    Requirement(
        "state-store-is-the-truth",
        bug("Blaizzy/mlx-vlm", 1046),
        "A response says store: true where it is stored, and only there; an id that leads to nothing is refused.",
        (
            *within(
                _STORED,
                "test_chain_that_stores_nothing_says_so",
                "test_stored_response_says_so_wherever_it_is_shown",
            ),
            *within(
                _REHYDRATE,
                "test_response_whose_ancestor_was_deleted_cannot_be_continued",
                "test_unknown_or_foreign_previous_response_answers_400_with_its_own_code",
            ),
            *within("tests/core/turn/test_round.py", "test_previous_response_that_nobody_loaded_is_refused"),
        ),
    ),
    Requirement(
        "state-hosted-tools-in-history",
        bug("ogx-ai/ogx", 3105),
        "What hosted tools left in a history stays as it is for clients, is told to the model as calls and outputs, "
        "and no item of a type that servers do not know is sent to one.",
        (
            *within(
                _TURNS,
                "test_listed_tools_are_not_listed_again_in_the_next_turn",
                "test_mcp_call_of_an_earlier_turn_is_told_to_the_model_as_call_and_output",
            ),
            *within(
                "tests/e2e/test_items_on_their_way.py",
                "test_items_of_hosted_tools_are_told_as_calls_and_kept_as_they_are",
            ),
            *within(
                "tests/core/turn/test_model_items.py",
                "test_every_item_type_of_the_api_is_decided",
                "test_hosted_call_is_told_as_a_function_call_and_its_output",
                "test_item_that_says_nothing_to_a_model_is_left_out",
            ),
            "tests/e2e/test_web_search.py",
        ),
    ),
    Requirement(
        "state-calls-have-outputs",
        bug("openai/openai-agents-python", 1061),
        "A response whose call waits for an output is continued with it or refused by the call's id; a call that the "
        "gateway made is stored with its output, also where it failed.",
        (
            "tests/core/turn/test_pending_calls.py",
            *within(_REHYDRATE, "test_pending_call_of_the_history_must_be_answered"),
            *within(
                _CONTINUATIONS,
                "test_call_of_an_incomplete_response_waits_for_its_output",
                "test_response_whose_tool_failed_is_continued_with_the_call_and_its_output",
            ),
        ),
    ),
    Requirement(
        "state-any-upstream",
        bug("vercel/ai", 15308),
        "A conversation is bound to no inference server nor to its key: each is sent all of it, and no response's id.",
        (
            *within("tests/e2e/test_two_upstreams.py", "test_conversation_goes_on_with_another_upstream"),
            *within(_TURNS, "test_model_server_is_asked_without_any_state_of_ours"),
        ),
    ),
    Requirement(
        "state-incomplete",
        STATE,
        "An incomplete response is continued with what was said; a failed or cancelled one is refused, never a 500.",
        (
            *within(
                _CONTINUATIONS,
                "test_incomplete_response_is_continued_with_what_was_said",
                "test_call_of_an_incomplete_response_waits_for_its_output",
                "test_response_that_ran_out_of_rounds_is_continued_with_its_calls",
                "test_failed_response_is_refused",
            ),
            *within(_REHYDRATE, "test_response_without_output_is_continued_from_its_input"),
            *within(
                "tests/e2e/test_disconnects.py",
                "test_cancelled_response_cannot_be_continued_and_its_items_are_not_found",
            ),
        ),
    ),
    Requirement(
        "state-soak",
        bug("praxis-proxy/ai", 937),
        "Whatever is killed, a store holds every turn that a client was told of, once, whole and in order.",
        ("tests/soak/",),
    ),
    Requirement(
        "state-execute",
        DESIGN,
        "The whole turn runs without Envoy as well, with plain control flow.",
        ("tests/core/turn/test_execute.py",),
    ),
    Requirement(
        "store-contract",
        DESIGN,
        "Every store keeps turns, items, approvals and conversations alike, apart by tenant, any JSON exactly.",
        (f"{_STORAGE}/test_contract.py", f"{_STORAGE}/test_store_agrees_with_dict.py", f"{_STORAGE}/test_row.py"),
    ),
    Requirement(
        "store-retention",
        bug("vllm-project/vllm", 48275),
        "A store keeps responses for as long as it is told: past that they are unknown at once, and removed with all "
        "that leads to them, in bounded transactions, by one process at a time, never while they run.",
        (
            f"{_STORAGE}/test_retention.py",
            *within(_RETENTION, "test_response_is_unknown_when_its_time_is_over_and_nothing_of_it_is_left"),
        ),
    ),
    Requirement(
        "store-delete",
        bug("vllm-project/vllm", 39624),
        "Deleting a response removes every row that leads to it.",
        within(_RETENTION, "test_deleted_response_leaves_no_row_behind"),
    ),
    Requirement(
        "store-false",
        bug("vllm-project/agentic-api", 238),
        "A turn with store: false is in no byte of the database.",
        within(_RETENTION, "test_turns_that_are_not_stored_leave_no_trace_in_the_database"),
    ),
    Requirement(
        "store-failures",
        DESIGN,
        "A store that fails says so in time, comes back by itself, and neither leaks nor corrupts anything.",
        (f"{_STORAGE}/test_failures.py", f"{_STORAGE}/test_postgresql.py"),
    ),
    Requirement(
        "store-shared",
        STATE,
        "A conversation goes on at any gateway that shares its database, and nobody can tell.",
        within(
            _POSTGRESQL,
            "test_conversation_goes_on_at_any_gateway_of_a_database",
            "test_conversation_object_is_the_same_at_any_gateway_of_a_database",
        ),
    ),
    Requirement(
        "store-down",
        DESIGN,
        "A store that is down is 503 with retry-after, never 404, and needs no restart of the gateway when it is back.",
        within(_POSTGRESQL, "test_store_that_is_down_is_never_not_found_and_needs_no_restart_of_the_gateway"),
    ),
    Requirement(
        "store-killed",
        bug("praxis-proxy/ai", 837),
        "Whatever happens to the store, a turn of which a client was told is in it, once.",
        (
            *within(
                _POSTGRESQL,
                "test_server_killed_in_the_middle_of_turns_has_every_turn_that_a_client_was_told_of",
            ),
            f"{_STORAGE}/test_sqlite.py",
            *within(
                f"{_STORAGE}/test_group_commit.py",
                "test_process_killed_in_the_middle_of_group_commits_has_every_turn_that_was_told",
            ),
        ),
    ),
    Requirement(
        "store-groups",
        DESIGN,
        "Changes that wait at the same moment share one commit, in bounded groups, and each succeeds or fails alone.",
        (f"{_STORAGE}/test_group_commit.py",),
    ),
    Requirement(
        "store-any-text",
        bug("coder/coder", 28625),
        "NUL, lone surrogates and ids of any length cost no turn on any store, and come back as they were; a row that "
        "a database refuses is not logged.",
        (
            *within(
                f"{_STORAGE}/test_contract.py",
                "TestPostgresqlStore",
                "TestSqliteStore",
            ),
            *within(f"{_STORAGE}/test_postgresql.py", "test_refused_row_is_not_shown_in_the_log"),
            f"{_STORAGE}/test_store_agrees_with_dict.py",
        ),
    ),
    Requirement(
        "store-processes",
        DESIGN,
        "Several processes may use one database at once.",
        (f"{_STORAGE}/test_processes.py",),
    ),
    Requirement(
        "store-statements",
        DESIGN,
        "Each call costs a fixed number of statements, found by key, however long a chain is.",
        (f"{_STORAGE}/test_sql_store.py",),
    ),
    Requirement(
        "store-migrations",
        DESIGN,
        "The schema is made and brought up to date at start; a foreign or newer database is left alone.",
        (f"{_STORAGE}/test_migrate.py", f"{_STORAGE}/test_migrate_each.py", f"{_STORAGE}/test_url.py"),
    ),
)
