"""What is remembered: turns, their order, and the database they are in."""

from __future__ import annotations

from requirements.requirement import Requirement, within
from requirements.sources import DESIGN, STATE, bug

_TURNS = "tests/e2e/test_turns.py"
_STORAGE = "tests/core/storage"
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
        ("tests/core/turn/test_persist.py",),
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
        "Every store keeps turns and items alike, apart by tenant, any JSON exactly.",
        (f"{_STORAGE}/test_contract.py", f"{_STORAGE}/test_store_agrees_with_dict.py", f"{_STORAGE}/test_row.py"),
    ),
    Requirement(
        "store-failures",
        DESIGN,
        "A store that fails says so in time, comes back by itself, and neither leaks nor corrupts anything.",
        (f"{_STORAGE}/test_failures.py", f"{_STORAGE}/test_postgresql.py"),
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
        (f"{_STORAGE}/test_migrate.py", f"{_STORAGE}/test_url.py"),
    ),
)
