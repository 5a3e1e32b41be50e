"""Input items become chat messages: one turn of the model is one message, and nothing is lost or made up."""

from __future__ import annotations

from typing import Any

import pytest

from attache_core.errors import ClientError
from attache_core.json_codec import Json
from attache_core.turn.chat_completions import DEFAULT_REASONING_FIELDS, ChatRequestOptions, ReasoningField
from attache_core.turn.chat_completions.messages import chat_messages

PNG = "data:image/png;base64,iVBORw0KGgo="
PDF = "data:application/pdf;base64,JVBERi0="


def messages(*items: Json, instructions: str | None = None, **options: Any) -> list[Json]:
    fields: tuple[ReasoningField, ...] = options.pop("fields", DEFAULT_REASONING_FIELDS)
    given = ChatRequestOptions(reasoning_fields=fields, **options)
    return chat_messages(instructions, items, given)


def user(*parts: Json) -> Json:
    return {"type": "message", "role": "user", "content": list(parts)}


def said(text: str) -> Json:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}


def thought(text: str) -> Json:
    return {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": text}]}


def called(call_id: str, arguments: str = "{}") -> Json:
    return {"type": "function_call", "call_id": call_id, "name": "look", "arguments": arguments, "id": "fc_1"}


def told(call_id: str, output: Any = "seen") -> Json:
    return {"type": "function_call_output", "call_id": call_id, "output": output}


def tool_call(call_id: str, arguments: str = "{}", name: str = "look") -> Json:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


TEXT = {"type": "input_text", "text": "Hi"}
BOTH = {"reasoning_content": "Hm.", "reasoning": "Hm."}


def test_instructions_and_developers_in_front_are_one_system_message() -> None:
    developer = {"role": "developer", "content": "No jokes."}
    system = {"type": "message", "role": "system", "content": [{"type": "input_text", "text": "In French."}]}

    assert messages(developer, system, user(TEXT), instructions="Be brief.") == [
        {"role": "system", "content": "Be brief.\n\nNo jokes.\n\nIn French."},
        {"role": "user", "content": "Hi"},
    ]


def test_system_messages_in_front_may_have_an_image() -> None:
    system = {"role": "system", "content": [TEXT, {"type": "input_image", "image_url": PNG}]}

    assert messages(system, system, instructions="Be brief.") == [
        {
            "role": "system",
            "content": [
                {"type": "text", "text": "Be brief."},
                *[{"type": "text", "text": "Hi"}, {"type": "image_url", "image_url": {"url": PNG}}] * 2,
            ],
        }
    ]


@pytest.mark.parametrize("role", ["system", "user"])
def test_later_system_message_stays_in_its_place_under_the_role_that_is_set(role: str) -> None:
    developer = {"role": "developer", "content": "No jokes."}

    assert messages(user(TEXT), developer, developer, instructions="Be brief.", late_system_role=role) == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hi"},
        {"role": role, "content": "No jokes."},
        {"role": role, "content": "No jokes."},
    ]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("Hi", "Hi"),
        ([], ""),
        ([TEXT], "Hi"),
        ([TEXT, TEXT], "Hi\nHi"),
        ([{"type": "input_image", "image_url": PNG}], [{"type": "image_url", "image_url": {"url": PNG}}]),
        (
            [TEXT, {"type": "input_image", "image_url": PNG, "detail": "low", "file_id": None}],
            [{"type": "text", "text": "Hi"}, {"type": "image_url", "image_url": {"url": PNG, "detail": "low"}}],
        ),
        (
            [{"type": "input_file", "file_data": PDF, "filename": "a.pdf"}],
            [{"type": "file", "file": {"file_data": PDF, "filename": "a.pdf"}}],
        ),
    ],
)
def test_content_is_a_string_where_it_is_all_text_and_parts_otherwise(content: Any, expected: Any) -> None:
    assert messages({"role": "user", "content": content}) == [{"role": "user", "content": expected}]


def test_refusal_is_sent_as_the_text_that_the_model_said() -> None:
    refusal = {"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]}

    assert messages(refusal) == [{"role": "assistant", "content": "No."}]


def test_reasoning_text_and_calls_of_one_go_are_one_message() -> None:
    assert messages(
        user(TEXT), thought("Hm."), said("Let me look."), called("a"), called("b"), told("a"), told("b")
    ) == [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Let me look.", **BOTH, "tool_calls": [tool_call("a"), tool_call("b")]},
        {"role": "tool", "tool_call_id": "a", "content": "seen"},
        {"role": "tool", "tool_call_id": "b", "content": "seen"},
    ]


def test_call_without_text_has_null_content() -> None:
    assert messages(called("a", '{"x": 1}'), told("a")) == [
        {"role": "assistant", "content": None, "tool_calls": [tool_call("a", '{"x": 1}')]},
        {"role": "tool", "tool_call_id": "a", "content": "seen"},
    ]


def test_each_round_of_calls_is_a_message_of_its_own() -> None:
    assert [message["role"] for message in messages(called("a"), told("a"), called("b"), told("b"), said("Done."))] == [
        "assistant",
        "tool",
        "assistant",
        "tool",
        "assistant",
    ]


def test_text_between_calls_and_their_outputs_stays_in_the_message_of_the_calls() -> None:
    assert messages(called("a"), said("Looking."), thought("Hm."), called("b"), told("a"), told("b"))[:2] == [
        {"role": "assistant", "content": "Looking.", **BOTH, "tool_calls": [tool_call("a"), tool_call("b")]},
        {"role": "tool", "tool_call_id": "a", "content": "seen"},
    ]


def test_outputs_follow_their_calls_whatever_stood_between() -> None:
    between = [user(TEXT), {"role": "developer", "content": "No jokes."}, said("Well.")]

    assert messages(called("a"), called("b"), told("b"), *between, told("a"), told("a", "again")) == [
        {"role": "assistant", "content": None, "tool_calls": [tool_call("a"), tool_call("b")]},
        {"role": "tool", "tool_call_id": "a", "content": "seen"},
        {"role": "tool", "tool_call_id": "b", "content": "seen"},
        {"role": "user", "content": "Hi"},
        {"role": "system", "content": "No jokes."},
        {"role": "assistant", "content": "Well."},
        {"role": "tool", "tool_call_id": "a", "content": "again"},
    ]


def test_texts_that_follow_one_another_stay_apart() -> None:
    assert messages(said("One."), thought("Hm."), said("Two."), said("Three.")) == [
        {"role": "assistant", "content": "One."},
        {"role": "assistant", "content": "Two.", **BOTH},
        {"role": "assistant", "content": "Three."},
    ]


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        (thought("Hm."), "Hm."),
        ({"type": "reasoning", "summary": [{"type": "summary_text", "text": "In short."}]}, "In short."),
        ({"type": "reasoning", "summary": [], "content": None, "encrypted_content": "gAAA"}, None),
    ],
)
def test_reasoning_is_its_text_or_else_its_summary(item: Json, expected: str | None) -> None:
    (message,) = messages(item, said("Hello."), fields=("reasoning",))

    assert message.get("reasoning") == expected


@pytest.mark.parametrize("fields", [(), ("reasoning",), ("reasoning_content",), ("reasoning_content", "reasoning")])
def test_reasoning_goes_by_the_names_that_are_set(fields: tuple[ReasoningField, ...]) -> None:
    expected: Json = {"role": "assistant", "content": "Hello."}
    expected.update(dict.fromkeys(fields, "Hm."))

    assert messages(thought("Hm."), said("Hello."), fields=fields) == [expected]


def test_reasoning_that_led_to_nothing_is_left_out() -> None:
    assert messages(thought("Hm."), user(TEXT), thought("Hm?")) == [{"role": "user", "content": "Hi"}]


def test_output_of_a_call_may_have_parts() -> None:
    parts = [{"type": "input_text", "text": "A cat:"}, {"type": "input_image", "image_url": PNG}]

    assert messages(called("a"), told("a", parts))[1] == {
        "role": "tool",
        "tool_call_id": "a",
        "content": [{"type": "text", "text": "A cat:"}, {"type": "image_url", "image_url": {"url": PNG}}],
    }


REFUSED: list[tuple[Json, str]] = [
    ({"type": "item_reference", "id": "msg_1"}, "item_reference"),
    ({"type": "web_search_call", "id": "ws_1"}, "web_search_call"),
    ({"type": "compaction", "encrypted_content": "x"}, "compaction"),
    ({"id": "msg_1"}, "None"),
    (user({"type": "input_audio"}), "input_audio"),
    (user(TEXT, {"type": "input_image", "file_id": "file_1"}), "file_id"),
    (user({"type": "input_file", "file_id": "file_1"}), "file_id"),
    (user({"type": "input_file", "file_url": "https://example.com/a.pdf"}), "file_url"),
    (told("a", [{"type": "input_image", "file_id": "file_1"}]), "file_id"),
]


@pytest.mark.parametrize(("item", "named"), REFUSED)
def test_what_has_no_counterpart_is_refused_by_name(item: Json, named: str) -> None:
    with pytest.raises(ClientError) as refused:
        messages(user(TEXT), item)

    error = refused.value
    assert (error.http_status, error.code, error.param) == (400, "unsupported_value", "input")
    assert f"'{named}'" in error.message


@pytest.mark.parametrize(
    ("item", "named"),
    [
        ({"type": "custom_tool_call", "call_id": "a", "name": "patch", "input": "x"}, "type 'custom_tool_call'"),
        ({"type": "custom_tool_call_output", "call_id": "a", "output": "ok"}, "type 'custom_tool_call_output'"),
        ({"type": "tool_search_call", "call_id": "a", "arguments": {}}, "type 'tool_search_call'"),
        ({"type": "tool_search_output", "call_id": "a", "tools": []}, "type 'tool_search_output'"),
        ({**called("a"), "namespace": "crm"}, "function in a namespace"),
    ],
)
def test_call_of_what_is_no_function_is_refused_with_the_chain_that_serves_it(item: Json, named: str) -> None:
    with pytest.raises(ClientError) as refused:
        messages(user(TEXT), item)

    error = refused.value
    assert (error.http_status, error.code, error.param) == (400, "unsupported_value", "input")
    assert named in error.message
    assert error.message.endswith("A chain with 'tool_dispatch' serves tools that are no functions, and their calls.")


def test_call_whose_namespace_is_null_is_a_call_of_a_function() -> None:
    assert messages({**called("a"), "namespace": None}, told("a")) == messages(called("a"), told("a"))
