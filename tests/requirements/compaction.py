"""Conversations that outgrow a model: what is dropped on request, and what a summary stands for."""

from __future__ import annotations

from requirements.requirement import Requirement, within
from requirements.sources import COMPACTION, CREATE, DESIGN, bug

_UNIT = "tests/core/turn/compaction"

REQUIREMENTS = (
    Requirement(
        "compaction-checkpoint",
        COMPACTION,
        "A checkpoint is opaque, opens for its deployment and its tenant alone, and is refused when it was altered.",
        (f"{_UNIT}/test_seal.py",),
    ),
    Requirement(
        "compaction-window",
        bug("openai/codex", 37121),
        "The latest checkpoint stands for what is before it, and no cut parts a call from its output.",
        (
            f"{_UNIT}/test_window.py",
            f"{_UNIT}/test_compact.py",
            *within(
                "tests/core/turn/test_truncation.py",
                "test_call_goes_with_its_output_and_the_reasoning_before_it",
                "test_whatever_fits_is_the_end_of_the_conversation_with_every_pair_whole",
            ),
        ),
    ),
    Requirement(
        "compaction-of-what-is-given",
        bug("openai/openai-agents-python", 2333),
        "The endpoint takes the conversation itself, also one that is not stored, or the id of a response; a model is "
        "asked for by name; it leaves nothing in the store.",
        within(
            "tests/e2e/test_compaction.py",
            "test_list_of_tools_stays_beside_the_checkpoint_and_goes_on_to_count",
            "test_request_that_cannot_be_compacted_is_refused",
            "test_request_without_a_model_or_with_too_many_items_is_refused",
            "test_stored_conversation_is_compacted_by_the_id_of_its_last_response_and_nothing_is_stored",
            "test_window_that_was_compacted_is_sent_on_in_place_of_the_conversation",
        ),
    ),
    Requirement(
        "compaction-endpoint",
        COMPACTION,
        "POST /v1/responses/compact, a threshold and a trigger make checkpoints that conversations go on from.",
        (
            "tests/e2e/test_compaction.py",
            *within("tests/core/turn/test_execute.py", "test_conversation_that_is_too_long_goes_on_from_a_summary"),
            *within(
                "tests/core/types/test_request.py",
                "test_validate_create_with_a_wrong_wish_for_compaction_says_what_is_wrong",
                "test_validate_create_lets_compaction_be_asked_for_where_there_is_any",
            ),
        ),
    ),
    Requirement(
        "compaction-settings",
        DESIGN,
        "The section `compaction` of the gateway file is all that it takes; without keys compaction is refused.",
        (
            "tests/envoy/gateway/test_compaction_section.py",
            "tests/filters/builtin/test_compaction.py",
        ),
    ),
    Requirement(
        "truncation-auto",
        CREATE,
        "With truncation: auto an input that is too long loses its oldest items, never one of a pair, and is answered.",
        (
            "tests/core/turn/test_truncation.py",
            "tests/e2e/test_truncation.py",
            *within(
                "tests/e2e/test_chat_completions.py",
                "test_truncation_is_the_gateways_business_where_a_server_has_no_word_for_it",
            ),
        ),
    ),
)
