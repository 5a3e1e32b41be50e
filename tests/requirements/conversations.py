"""Conversations: their endpoints, the turns in them, and who may have one when."""

from __future__ import annotations

from requirements.requirement import Requirement, within
from requirements.sources import CONVERSATIONS, DESIGN, STATE, bug

_API = "tests/e2e/test_conversations.py"
_TURNS = "tests/e2e/test_conversation_turns.py"
_HOLD = "tests/core/turn/test_conversation_hold.py"
_RESOURCES = "tests/filters/builtin/test_resources.py"

REQUIREMENTS = (
    Requirement(
        "conversation-endpoints",
        CONVERSATIONS,
        "Conversations and their items are created, read, listed, changed and removed as OpenAI's API does it.",
        (_API,),
    ),
    Requirement(
        "conversation-turns",
        STATE,
        "A turn reads its conversation and adds what was sent and what was answered, under the ids of the response.",
        (
            *within(
                _TURNS,
                "test_turn_reads_its_conversation_and_adds_to_it",
                "test_sdk_talks_in_a_conversation",
            ),
            *within(_HOLD, "test_turn_without_a_conversation_holds_none"),
            *within(
                "tests/e2e/test_stored_responses.py",
                "test_chain_that_stores_nothing_reads_a_conversation_and_adds_nothing",
            ),
        ),
    ),
    Requirement(
        "conversation-store-false",
        bug("vllm-project/agentic-api", 56),
        "With store: false the history is read and the items are added, as OpenAI does it; no response is stored.",
        (
            *within(_TURNS, "test_turn_that_is_not_stored_adds_its_items_all_the_same"),
            *within(_HOLD, "test_turn_that_is_not_stored_adds_the_items_that_it_refers_to"),
        ),
    ),
    Requirement(
        "conversation-locked",
        bug("paulgmiller/careme", 379),
        "Two turns on one conversation never meet: the second waits, or is refused, before the model is asked.",
        (
            *within(
                _TURNS,
                "test_second_turn_waits_for_the_first_and_reads_what_it_added",
                "test_second_turn_that_may_not_wait_is_refused_before_the_model_is_asked",
                "test_turns_of_many_clients_are_each_there_once_whole_and_in_order",
                "test_conversation_whose_client_went_away_is_free_at_once",
            ),
            *within(
                _HOLD,
                "test_held_conversation_is_renewed_as_long_as_the_turn_runs_though_the_store_fails_at_times",
                "test_held_conversation_that_does_not_get_free_answers_locked",
                "test_conversation_is_free_after_a_turn_however_that_ends",
                "test_conversation_is_free_after_a_turn_that_was_cancelled_while_it_got_it",
            ),
        ),
        "OpenAI refuses the second turn at once; here it waits by default, which no client has to know about.",
    ),
    Requirement(
        "conversation-duplicates",
        bug("openai/openai-agents-js", 425),
        "A turn that sends again what its conversation holds is refused, and nothing is stored twice.",
        (
            *within(_TURNS, "test_turn_that_sends_an_item_of_its_conversation_again_is_refused"),
            *within(_HOLD, "test_input_that_repeats_an_item_is_refused_in_a_conversation"),
        ),
    ),
    Requirement(
        "conversation-commit",
        bug("praxis-proxy/ai", 837),
        "A turn whose items cannot be added fails and leaves nothing; so does one that fails by itself.",
        (
            *within(
                _TURNS,
                "test_turn_that_fails_adds_nothing",
                "test_turn_whose_conversation_lost_an_item_that_it_had_read_fails_and_leaves_nothing",
            ),
            *within(
                _HOLD,
                "test_store_that_is_down_when_the_turn_ends_keeps_the_terminal_event_back",
                "test_turn_that_lost_its_conversation_is_refused_at_its_end_and_not_stored",
                "test_unknown_conversation_answers_404_before_anything_is_asked",
            ),
        ),
    ),
    Requirement(
        "conversation-branches",
        DESIGN,
        "What a stored response had read stays with it, whatever becomes of the conversation.",
        (
            *within(_TURNS, "test_response_of_a_conversation_is_continued_from_what_it_had_read"),
            *within(_HOLD, "test_turn_tells_those_below_which_state_of_the_conversation_it_reads"),
        ),
    ),
    Requirement(
        "conversation-tenants",
        bug("BerriAI/litellm", 39548),
        "Every endpoint of responses and conversations answers 404 for the id of another tenant, and changes nothing.",
        (_RESOURCES,),
    ),
)
