"""Input items on their way: what references become, under which ids items travel, what a model server is told of them,
and that what was answered is read back as it was sent."""

from __future__ import annotations

from typing import Any

import pytest

from attache_core.json_codec import Json, encode
from attache_core.testing.model_script import (
    Reply,
    call,
    ends_without_terminal,
    function_calls,
    incomplete,
    raw,
    reasoning_then,
    says,
    text,
    thinks,
)
from e2e.stage import Stage, check

AWKWARD = "NUL \0, half a pair \ud83d, a pair \U0001f600, a line separator \u2028, [DONE]"
FORECAST = {"type": "function", "name": "get_forecast", "parameters": {"type": "object", "properties": {}}}


def error(message: str, param: str | None, code: str | None = None) -> Json:
    return {"error": {"message": message, "type": "invalid_request_error", "param": param, "code": code}}


def user(words: str, **fields: Any) -> Json:
    return {"role": "user", "content": [{"type": "input_text", "text": words}], **fields}


def heard(asked: Json) -> list[str]:
    """The texts of the messages that a model server was asked with."""
    return [item["content"][0]["text"] for item in asked["input"]]


async def test_reference_is_the_stored_item_and_later_turns_have_it_too(stage: Stage, stream: bool) -> None:
    stage.model.play(text("Hello Ada."), text("Again: Ada."), text("Still Ada."))
    first = check(await stage.ask(input=[user("I am Ada.", id="item 7")], stream=stream))
    (said,) = first.body["output"]

    second = check(
        await stage.ask(
            input=[{"type": "item_reference", "id": "item 7"}, {"id": said["id"]}, user("Who?")], stream=stream
        )
    )
    check(await stage.ask(input="And?", previous_response_id=second.body["id"], stream=stream))

    assert heard(stage.model.asked[1]) == ["I am Ada.", "Hello Ada.", "Who?"]
    assert heard(stage.model.asked[2]) == ["I am Ada.", "Hello Ada.", "Who?", "Again: Ada.", "And?"]
    assert stage.model.asked[1]["input"][1]["id"] == said["id"]


async def test_reference_of_a_turn_that_is_not_stored_is_the_stored_item(stage: Stage, stream: bool) -> None:
    stage.model.play(text("One."), text("Two."))
    first = check(await stage.ask(input="one", stream=stream))

    check(await stage.ask(input=[{"id": first.body["output"][0]["id"]}, user("two")], store=False, stream=stream))

    assert heard(stage.model.asked[1]) == ["One.", "two"]


async def test_reference_to_a_call_pairs_with_its_output(stage: Stage, stream: bool) -> None:
    stage.model.play(function_calls(call("get_forecast", {})), text("Snow."))
    first = check(await stage.ask(input="Weather?", tools=[FORECAST], stream=stream))
    (called,) = first.body["output"]
    output = {"type": "function_call_output", "call_id": called["call_id"], "output": "snow"}

    check(await stage.ask(input=[user("Weather?"), {"id": called["id"]}, output], stream=stream))

    assert [item.get("type", "message") for item in stage.model.asked[1]["input"]] == [
        "message",
        "function_call",
        "function_call_output",
    ]


@pytest.mark.parametrize("store", [True, False])
async def test_unknown_reference_is_404_and_nothing_is_asked_or_stored(stage: Stage, stream: bool, store: bool) -> None:
    before = stage.stored_turns()

    answer = await stage.ask(input=[user("Hi"), {"type": "item_reference", "id": "msg_x"}], store=store, stream=stream)

    assert (answer.status, answer.body) == (404, error("Item with id 'msg_x' not found.", "input"))
    assert (stage.model.asked, stage.stored_turns()) == ([], before)


async def test_item_of_a_failed_turn_is_not_found(stage: Stage) -> None:
    stage.model.play(ends_without_terminal())
    failed = await stage.ask(input=[user("Hi", id="item of a failed turn")], stream=True)

    answer = await stage.ask(input=[{"id": "item of a failed turn"}])

    assert failed.body["status"] == "failed"
    assert (answer.status, answer.body) == (404, error("Item with id 'item of a failed turn' not found.", "input"))


@pytest.mark.parametrize("conversation", ["conv_1", {"id": "conv_1"}])
async def test_conversation_is_404_and_nothing_is_asked(stage: Stage, stream: bool, conversation: Any) -> None:
    answer = await stage.ask(input="Hi", conversation=conversation, stream=stream)

    assert (answer.status, answer.body) == (404, error("Conversation with id 'conv_1' not found.", "conversation"))
    assert stage.model.asked == []


async def test_foreign_ids_reach_the_server_in_its_grammar_and_stay_apart(stage: Stage, stream: bool) -> None:
    stage.model.play(text("One."), text("Two."))
    ids = ["item_x", "msg_item_x", "call_1", "msg é", "msg_" + "y" * 60]
    first = check(await stage.ask(input=[user(name, id=name) for name in ids], stream=stream))
    check(await stage.ask(input="next", previous_response_id=first.body["id"], stream=stream))

    sent = [[item["id"] for item in asked["input"][:5]] for asked in stage.model.asked]
    assert sent[0] == sent[1]
    assert len(set(sent[0])) == 5
    assert [sent[0][1], sent[0][4]] == [ids[1], ids[4]]
    assert all(item_id.startswith("msg_") and len(item_id) <= 64 and item_id.isascii() for item_id in sent[0])


async def test_items_of_hosted_tools_are_told_as_calls_and_kept_as_they_are(stage: Stage, stream: bool) -> None:
    stage.model.play(text("Green."), text("Yes."))
    search = {
        "type": "web_search_call",
        "id": "ws_7",
        "status": "completed",
        "action": {"type": "search", "query": "tea", "queries": ["tea"]},
    }
    refusal = {
        "type": "message",
        "id": "msg_no",
        "status": "completed",
        "role": "assistant",
        "content": [{"type": "refusal", "refusal": "No."}],
    }
    thought = {"type": "reasoning", "id": "rs_7", "summary": [{"type": "summary_text", "text": "Hm."}]}

    first = check(await stage.ask(input=[user("Tea?"), thought, search, refusal, user("Well?")], stream=stream))
    check(await stage.ask(input=[{"id": "ws_7"}, user("Sure?")], previous_response_id=first.body["id"], stream=stream))

    _, hm, asked, answered, no, _ = stage.model.asked[0]["input"]
    assert hm == {**thought, "content": [{"type": "reasoning_text", "text": "Hm."}]}
    assert (asked["type"], asked["name"], answered["type"]) == ("function_call", "web_search", "function_call_output")
    assert asked["call_id"] == answered["call_id"]
    assert no["content"] == [{"type": "output_text", "text": "No.", "annotations": []}]
    later = stage.model.asked[1]["input"]
    assert later[1:5] == [hm, asked, answered, no]
    assert later[7:9] == [asked, answered]


async def test_item_that_cannot_be_told_is_refused_by_name(stage: Stage, stream: bool) -> None:
    answer = await stage.ask(input=[user("Hi"), {"type": "compaction", "encrypted_content": "abc"}], stream=stream)

    assert (answer.status, answer.body["error"]["code"]) == (400, "unsupported_value")
    assert "'compaction'" in answer.body["error"]["message"]
    assert stage.model.asked == []


async def test_server_is_sent_what_the_client_sent_and_no_more(stage: Stage, stream: bool) -> None:
    stage.model.play(text("Yes."))
    options: Json = {"stream_options": {"include_obfuscation": False}} if stream else {}

    check(
        await stage.ask(
            input="Hi",
            tools=None,
            tool_choice=None,
            max_tool_calls=3,
            top_k=5,
            metadata={"a": "b"},
            include=["web_search_call.action.sources", "reasoning.encrypted_content"],
            stream=stream,
            **options,
        )
    )

    (asked,) = stage.model.asked
    assert asked == {
        "model": "attache-demo",
        "input": "Hi",
        "top_k": 5,
        "metadata": {"a": "b"},
        "include": ["reasoning.encrypted_content"],
        "store": False,
        **({"stream": True} if stream else {}),
    }


@pytest.mark.parametrize(
    "reply",
    [
        text(AWKWARD),
        text(AWKWARD, deltas=list(AWKWARD)),
        reasoning_then(AWKWARD, AWKWARD),
        says(thinks(AWKWARD), call("get_forecast", encode({AWKWARD: AWKWARD}).decode()), AWKWARD),
    ],
    ids=["text", "text in single characters", "reasoning", "arguments"],
)
async def test_any_text_of_a_model_is_delivered_stored_and_sent_again(stage: Stage, stream: bool, reply: Reply) -> None:
    stage.model.play(reply, text("Yes."))

    answer = check(await stage.ask(input=AWKWARD, tools=[FORECAST], stream=stream, metadata={"key": AWKWARD}))

    stored = await stage.get(f"/v1/responses/{answer.body['id']}")
    assert (stored.status_code, stored.json()) == (200, answer.body)
    assert answer.text in ("", AWKWARD)
    outputs = [
        {"type": "function_call_output", "call_id": item["call_id"], "output": AWKWARD}
        for item in answer.body["output"]
        if item["type"] == "function_call"
    ]
    check(await stage.ask(input=[*outputs, user("next")], previous_response_id=answer.body["id"], stream=stream))
    sent = stage.model.asked[1]["input"]
    assert heard({"input": sent[:1]}) == [AWKWARD]
    assert [item.get("content") for item in sent[1:] if item.get("role") == "assistant"] == [
        item["content"] for item in answer.body["output"] if item["type"] == "message"
    ]


async def test_control_characters_that_are_no_json_are_a_bad_answer_and_nothing_is_stored(
    stage: Stage, stream: bool
) -> None:
    before = stage.stored_turns()
    body = encode({"id": "resp_1", "object": "response", "status": "completed", "output": [], "model": "a"})
    broken = body.replace(b'"model":"a"', b'"model":"a\0"')
    frame = b'data: {"type":"response.completed","response":' + broken + b"}\n\n"
    kind, data = ("text/event-stream", frame) if stream else ("application/json", broken)
    stage.model.play(raw(200, {"content-type": kind}, [data]))

    answer = await stage.ask(input="Hi", stream=stream)

    assert (answer.status, answer.body["error"]["type"]) == (502, "server_error")
    assert stage.stored_turns() == before


def refusing() -> Reply:
    """A whole answer in which the model refuses; nothing is streamed."""
    part = {"type": "refusal", "refusal": "I cannot help with that."}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [part]}
    body = {"id": "resp_1", "object": "response", "status": "completed", "model": "m", "output": [message]}
    return raw(200, {"content-type": "application/json"}, [encode(body)])


ANSWERS: dict[str, Reply] = {
    "text": text("Hello."),
    "reasoning": reasoning_then("They greet me.", "Hello."),
    "refusal": refusing(),
    "function calls": function_calls(call("get_forecast", {"city": "Oslo"}), call("get_forecast", {"city": "Rome"})),
    "incomplete": incomplete("max_output_tokens", text("Hel")),
}


@pytest.mark.parametrize("reply", ANSWERS.values(), ids=ANSWERS.keys())
async def test_response_is_read_back_as_it_was_sent(stage: Stage, stream: bool, reply: Reply) -> None:
    stage.model.play(reply)
    answer = check(await stage.ask(input="Hi", tools=[FORECAST], stream=stream))

    for query in ("", "?include[]=message.output_text.logprobs", "?include_obfuscation=false&stream=false&new=1"):
        stored = await stage.get(f"/v1/responses/{answer.body['id']}{query}")
        assert (stored.status_code, stored.json()) == (200, answer.body)


async def test_response_that_failed_after_it_began_is_read_back_as_it_was_sent(stage: Stage) -> None:
    stage.model.play(ends_without_terminal())
    answer = check(await stage.ask(input="Hi", stream=True))

    stored = await stage.get(f"/v1/responses/{answer.body['id']}")

    assert answer.body["status"] == "failed"
    assert (stored.status_code, stored.json()) == (200, answer.body)


@pytest.mark.parametrize(
    ("query", "param"),
    [("include=all", "include[0]"), ("stream=true", "stream"), ("starting_after=x", "starting_after")],
)
async def test_response_is_not_read_back_otherwise_than_the_api_says(stage: Stage, query: str, param: str) -> None:
    answer = await stage.get(f"/v1/responses/resp_x?{query}")

    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param)
