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
        (f"{_UNIT}/test_window.py", f"{_UNIT}/test_compact.py"),
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
