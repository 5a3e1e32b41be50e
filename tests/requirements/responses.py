"""The response object, and the stream of events that builds it."""

from __future__ import annotations

from requirements.requirement import Requirement, within
from requirements.sources import CANCEL, DELETE, DESIGN, GET, INPUT_ITEMS, OBJECT, SSE, STREAMING, bug

_WIRE = "tests/e2e/test_known_failures_wire.py"
_ITEMS = "tests/e2e/test_items_on_their_way.py"
_STREAMS = "tests/e2e/test_streams_whole.py"
_TURNS = "tests/e2e/test_turns.py"
_LOOP = "tests/core/turn/test_loop_streams.py"
_STORED = "tests/e2e/test_stored_responses.py"
_EVENTS = "tests/core/events"

REQUIREMENTS = (
    Requirement(
        "response-fields",
        bug("theopenco/llmgateway", 2287),
        "A response has every field of the API, nullable ones as null, and echoes what the request said.",
        ("tests/core/types/test_response.py",),
    ),
    Requirement(
        "response-conformance",
        OBJECT,
        "Whatever the end-to-end tests receive has the fields and types that the API's schemas say.",
        ("tests/e2e/test_conformance.py", "tests/conformance/"),
    ),
    Requirement(
        "response-usage",
        bug("BerriAI/litellm", 13697),
        "Usage is whole, with zeros where a server says less, whatever it calls its counts.",
        (
            "tests/core/types/test_usage.py",
            *within(_WIRE, "test_usage_is_whole_or_null_whatever_the_inference_server_says_of_it"),
        ),
    ),
    Requirement(
        "response-usage-of-rounds",
        bug("vllm-project/agentic-api", 315),
        "Usage is the sum over all rounds; a round that reports none counts as nothing.",
        (
            *within(_TURNS, "test_usage_is_summed_over_rounds"),
            *within(_LOOP, "test_usage_is_the_sum_of_the_rounds_that_reported_any"),
        ),
    ),
    Requirement(
        "response-id",
        bug("BerriAI/litellm", 27333),
        "A response has one id, ours, in every event, in the stored object and in GET.",
        (
            *within(_WIRE, "test_id_of_a_response_is_ours_and_the_same_in_every_event_and_in_the_store"),
            *within("tests/core/turn/test_round.py", "test_plain_answer_is_one_terminal_event_under_our_id"),
        ),
    ),
    Requirement(
        "response-item-ids",
        bug("router-for-me/CLIProxyAPI", 4641),
        "Ids have the prefix of their type and the grammar that providers accept, and none is the model server's.",
        (
            "tests/core/types/test_ids.py",
            *within(_WIRE, "test_ids_have_the_prefix_of_their_type_and_none_is_the_inference_servers"),
        ),
    ),
    Requirement(
        "response-retrieved",
        GET,
        "What GET returns equals what was sent.",
        (
            *within(_TURNS, "test_text_turn_is_answered_stored_and_read_back_as_sent"),
            *within(
                _ITEMS,
                "test_response_is_read_back_as_it_was_sent",
                "test_response_that_failed_after_it_began_is_read_back_as_it_was_sent",
            ),
            *within("tests/e2e/test_openai_sdk.py", "test_create_and_retrieve_give_equal_responses"),
        ),
    ),
    Requirement(
        "response-retrieved-options",
        GET,
        "Query parameters of GET that cannot be honoured are refused by name.",
        (
            "tests/core/types/test_retrieve.py",
            *within(_ITEMS, "test_response_is_not_read_back_otherwise_than_the_api_says"),
        ),
        "OpenAI replays a stream with `stream` and `starting_after`; here no log of events is kept yet.",
    ),
    Requirement(
        "response-deleted",
        DELETE,
        "A deleted response is gone for every endpoint, and nothing that needs it is continued as if it had not been.",
        (
            *within(
                _STORED,
                "test_deleted_response_is_gone_and_cannot_be_continued_nor_can_what_continues_it",
                "test_sdk_deletes_a_response_and_pages_through_its_input",
            ),
        ),
    ),
    Requirement(
        "response-input-items",
        INPUT_ITEMS,
        "The items that a client sent in a turn are listed with ids, in either order, page by page.",
        (
            *within(
                _STORED,
                "test_input_items_are_those_of_the_turn_latest_first",
                "test_page_that_cannot_be_had_is_refused_by_name",
            ),
            "tests/core/types/test_paging.py",
        ),
    ),
    Requirement(
        "response-cancel-refused",
        CANCEL,
        "Cancelling is refused clearly while there are no background responses, and an id of another kind by its name.",
        (
            *within(
                _STORED,
                "test_cancel_of_a_response_that_has_ended_is_refused_with_what_would_be_right",
                "test_id_that_can_be_no_response_is_refused",
            ),
        ),
    ),
    Requirement(
        "stream-order",
        STREAMING,
        "One response.created first, one terminal event last, numbers 0..n, each item and part opened and closed once.",
        (
            f"{_EVENTS}/test_sequencer.py",
            f"{_EVENTS}/test_properties.py",
            *within(_LOOP, "test_event_that_is_too_much_in_its_middle_takes_no_numbers"),
            *within(
                "tests/e2e/test_openai_sdk_streams.py", "test_create_with_stream_gives_numbered_events_and_one_end"
            ),
        ),
    ),
    Requirement(
        "stream-created-first",
        bug("BerriAI/litellm", 22102),
        "No event comes before response.created, and nothing follows the terminal one.",
        within(
            f"{_EVENTS}/test_sequencer.py",
            "test_start_happens_once_and_is_owed_to_whatever_comes_first",
            "test_nothing_follows_the_terminal_event",
        ),
    ),
    Requirement(
        "stream-items-opened",
        bug("BerriAI/litellm", 41185),
        "No delta refers to an item or part that was not opened, also when reasoning comes before the text.",
        (
            f"{_EVENTS}/test_accumulator.py",
            *within(_TURNS, "test_reasoning_is_an_item_before_the_message"),
        ),
    ),
    Requirement(
        "stream-no-phantoms",
        bug("BerriAI/litellm", 37852),
        "A turn of nothing but a call has no event of a message, and no message of nothing but white space.",
        (
            f"{_EVENTS}/test_blank_messages.py",
            *within(_WIRE, "test_turn_of_nothing_but_a_call_has_no_message"),
        ),
    ),
    Requirement(
        "stream-one-response-of-rounds",
        bug("BerriAI/litellm", 40118),
        "All rounds of a turn are one response: one created, one terminal event, one numbering.",
        (
            *within(
                _TURNS,
                "test_mcp_tool_is_listed_called_and_its_result_told_to_the_model",
                "test_two_round_turn_asks_the_upstream_twice_the_second_time_through_the_loop_listener",
            ),
            *within(f"{_EVENTS}/test_sequencer.py", "test_rounds_are_one_response"),
            "tests/core/turn/test_recorded_turns.py",
        ),
    ),
    Requirement(
        "stream-as-openai",
        STREAMING,
        "For what the recordings show, the events are OpenAI's own, event by event.",
        (
            "tests/core/turn/test_openai_sequences.py",
            f"{_EVENTS}/test_recordings.py",
            f"{_EVENTS}/test_recordings_plain.py",
        ),
    ),
    Requirement(
        "stream-sse",
        SSE,
        "Event streams are read as the specification says, and written with event: and data: lines and LF.",
        (f"{_EVENTS}/test_sse.py",),
    ),
    Requirement(
        "stream-any-cut",
        bug("vllm-project/aibrix", 2266),
        "A stream gives the same events wherever its bytes are cut.",
        (f"{_EVENTS}/test_recordings_cut.py", f"{_EVENTS}/test_any_bytes.py"),
    ),
    Requirement(
        "stream-runs",
        SSE,
        "Deltas that come together go on together, and the client sees what it would see of each alone.",
        (f"{_EVENTS}/test_delta_runs.py", f"{_EVENTS}/test_event_stream.py"),
    ),
    Requirement(
        "stream-format-of-client",
        bug("vllm-project/semantic-router", 2446),
        "JSON or server-sent events is what the client asked for, whatever the model server sends.",
        within(_WIRE, "test_wire_format_is_the_one_that_the_client_asked_for_whatever_the_inference_server_sends"),
    ),
    Requirement(
        "stream-obfuscation",
        STREAMING,
        "Deltas are padded as OpenAI pads them, unless include_obfuscation is false.",
        (
            f"{_EVENTS}/test_obfuscation.py",
            *within(
                _LOOP,
                "test_client_gets_padding_unless_it_says_no_and_nobody_below_is_asked_for_any",
                "test_other_stream_options_reach_the_model",
                "test_round_without_a_loop_above_pads_as_well",
            ),
            *within(_STREAMS, "test_deltas_are_padded_unless_the_client_says_no"),
            *within("tests/e2e/test_openai_sdk_streams.py", "test_deltas_are_obfuscated_unless_the_client_says_no"),
        ),
    ),
    Requirement(
        "stream-signs-of-life",
        bug("openai/codex", 41340),
        "While nothing flows, a stream shows life with real events that clients count, at a set interval.",
        (
            "tests/core/turn/test_silence.py",
            *within(
                _LOOP,
                "test_client_that_waits_or_a_gateway_that_gives_no_signs_has_none",
                "test_closing_a_silent_turn_ends_what_is_below",
                "test_model_that_is_silent_before_its_first_event_does_not_silence_the_stream",
                "test_model_that_is_silent_between_its_events_does_not_silence_the_stream",
                "test_model_that_says_what_the_client_does_not_see_does_not_silence_the_stream",
                "test_server_that_is_slow_to_list_its_tools_does_not_silence_the_stream",
                "test_signs_from_below_are_not_passed_on",
                "test_stream_that_is_never_silent_for_so_long_has_no_sign",
                "test_tool_that_takes_long_does_not_silence_the_stream",
            ),
            *within(
                _STREAMS,
                "test_client_that_leaves_in_a_silence_ends_the_upstream_request",
                "test_model_that_is_silent_before_its_first_event",
                "test_model_that_is_silent_between_its_events",
                "test_sdk_reads_signs_of_life_wherever_they_come",
                "test_tool_that_takes_longer_than_the_interval",
                "test_waiting_client_gets_one_answer_however_long_it_takes",
            ),
        ),
        "OpenAI sends response.in_progress once; here it is repeated, because clients end streams that say nothing.",
    ),
    Requirement(
        "stream-early-created",
        DESIGN,
        "A streaming client gets response.created before any tool server is contacted.",
        within(
            "tests/e2e/test_interruptions.py",
            "test_streaming_client_gets_response_created_before_a_tool_server_is_asked",
        ),
    ),
    Requirement(
        "stream-incomplete",
        bug("vllm-project/agentic-api", 277),
        "An answer that is incomplete stays incomplete, with its details, and may be continued.",
        (
            *within(_TURNS, "test_incomplete_answer_stays_incomplete_and_may_be_continued"),
            *within(_LOOP, "test_incomplete_stays_incomplete_with_its_details"),
        ),
    ),
    Requirement(
        "stream-broken-is-closed",
        STREAMING,
        "When a stream breaks, what is open is closed as incomplete, then response.failed ends it.",
        (
            f"{_EVENTS}/test_watch.py",
            *within(
                _LOOP,
                "test_below_that_ends_without_saying_how_is_a_failed_response",
                "test_item_of_a_failed_round_is_closed_as_incomplete_before_the_one_terminal_event",
            ),
            *within(
                _STREAMS,
                "test_failure_after_the_first_byte_closes_what_is_open_and_is_told_once",
                "test_sdk_gets_the_failed_response_with_what_was_said",
            ),
        ),
    ),
    Requirement(
        "stream-memory",
        DESIGN,
        "What is kept of an answer follows its size, however small its deltas are.",
        (f"{_EVENTS}/test_memory.py", f"{_EVENTS}/test_growing_text.py"),
    ),
)
