"""Conversations that outgrow a model: what is dropped on request, and what a summary stands for."""

from __future__ import annotations

from requirements.requirement import Requirement, within
from requirements.sources import CREATE

REQUIREMENTS = (
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
