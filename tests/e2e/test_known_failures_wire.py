"""Failures of other gateways that clients reported: fields, ids, formats and streams. See the requirements."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from typing import Any

import pytest

from attache_core.json_codec import Json, encode
from attache_core.testing.model_script import (
    Reply,
    call,
    function_calls,
    in_dialect,
    raw,
    says,
    sse_event,
    stream_error,
    text,
    thinks,
)
from core.events.canonical_stream import check_stream
from e2e.stage import Stage, check

SSE = {"content-type": "text/event-stream"}
JSON = {"content-type": "application/json"}
USAGE_FIELDS = {"input_tokens", "input_tokens_details", "output_tokens", "output_tokens_details", "total_tokens"}


def message(said: str, **fields: object) -> Json:
    part = {"type": "output_text", "text": said, "annotations": []}
    return {
        "type": "message",
        "id": "theirs_1",
        "role": "assistant",
        "status": "completed",
        "content": [part],
        **fields,
    }


def response(*output: Json, **fields: object) -> Json:
    """A response as an inference server may send it: no more than it must."""
    return {"id": "resp_theirs", "object": "response", "status": "completed", "output": list(output), **fields}


def answers(body: Json) -> Reply:
    return raw(200, JSON, [encode(body)])


def streams(*events: Json) -> Reply:
    return raw(200, SSE, [sse_event(event) for event in events])


def ended(body: Json) -> Json:
    return {"type": "response.completed", "response": body}


def ids_in(value: Any) -> Iterator[str]:
    """Every id anywhere in JSON."""
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        if key in ("id", "item_id", "response_id") and child is not None:
            yield child
        yield from ids_in(child)


async def test_id_of_a_response_is_ours_and_the_same_in_every_event_and_in_the_store(
    stage: Stage, stream: bool
) -> None:
    stage.model.play(says(thinks("Hm."), "Hello."))

    answer = check(await stage.ask(input="Hi", stream=stream))

    stored = (await stage.get(f"/v1/responses/{answer.body['id']}")).json()
    events = [event["response"]["id"] for event in answer.events if "response" in event]
    assert {answer.body["id"], stored["id"], *events} == {answer.body["id"]}
    assert answer.body["id"].startswith("resp_")


async def test_ids_have_the_prefix_of_their_type_and_none_is_the_inference_servers(stage: Stage, stream: bool) -> None:
    output = [
        {
            "type": "reasoning",
            "id": "chatcmpl-0",
            "summary": [],
            "content": [{"type": "reasoning_text", "text": "Hm."}],
        },
        message("Hello.", id="chatcmpl-1"),
        {"type": "function_call", "id": "chatcmpl-2", "call_id": "call_1", "name": "f", "arguments": "{}"},
    ]
    body = response(*output, id="chatcmpl-3")
    stage.model.play(streams(ended(body)) if stream else answers(body))

    answer = check(await stage.ask(input="Hi", tools=[{"type": "function", "name": "f"}], stream=stream))

    assert [item["id"].partition("_")[0] for item in answer.body["output"]] == ["rs", "msg", "fc"]
    assert not [name for name in ids_in([answer.body, answer.events]) if name.startswith("chatcmpl")]
    assert max(len(item["id"]) for item in answer.body["output"]) <= 64


@pytest.mark.parametrize(
    "usage",
    [
        None,
        {},
        {"input_tokens": 3, "output_tokens": 4},
        {"input_tokens": 3, "input_tokens_details": {"cached_tokens": None}},
    ],
    ids=str,
)
async def test_usage_is_whole_or_null_whatever_the_inference_server_says_of_it(
    stage: Stage, stream: bool, usage: Json | None
) -> None:
    body = response(message("Hello."), usage=usage)
    stage.model.play(streams(ended(body)) if stream else answers(body))

    answer = check(await stage.ask(input="Hi", stream=stream))

    shown = answer.body["usage"]
    if shown is not None:
        assert set(shown) >= USAGE_FIELDS
        assert isinstance(shown["input_tokens_details"]["cached_tokens"], int)
        assert isinstance(shown["output_tokens_details"]["reasoning_tokens"], int)
        assert shown["total_tokens"] == shown["input_tokens"] + shown["output_tokens"]
    assert (shown is None) == (usage is None)


async def test_wire_format_is_the_one_that_the_client_asked_for_whatever_the_inference_server_sends(
    stage: Stage, stream: bool
) -> None:
    body = response(message("Hello."))
    stage.model.play(answers(body) if stream else streams(ended(body)))

    answer = check(await stage.ask(input="Hi", stream=stream))

    assert answer.headers["content-type"].startswith("text/event-stream" if stream else "application/json")
    assert answer.text == "Hello."


async def test_chunks_of_another_api_are_never_passed_on(stage: Stage, stream: bool) -> None:
    chunk = {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": "Hello."}}]}
    stage.model.play(raw(200, SSE, [b"data: " + encode(chunk) + b"\n\n", b"data: [DONE]\n\n"]))

    answer = await stage.ask(input="Hi", stream=stream)

    assert (answer.status, answer.body["error"]["type"]) == (502, "server_error")
    assert answer.headers["content-type"] == "application/json"


async def test_largest_metadata_is_echoed_as_it_came_and_stored(stage: Stage, stream: bool) -> None:
    stage.model.play(text("Yes."))
    metadata = {f"{number:064}": "é" * 512 for number in range(16)}

    answer = check(await stage.ask(input="Hi", metadata=metadata, stream=stream))

    assert answer.body["metadata"] == metadata
    assert (await stage.get(f"/v1/responses/{answer.body['id']}")).json()["metadata"] == metadata
    assert "metadata" not in stage.model.asked[0] or stage.model.asked[0]["metadata"] == metadata


async def test_limit_of_another_api_is_refused_and_not_ignored(stage: Stage, stream: bool) -> None:
    answer = await stage.ask(input="Hi", max_tokens=16, stream=stream)

    assert (answer.status, answer.body["error"]["param"]) == (400, "max_tokens")
    assert "max_output_tokens" in answer.body["error"]["message"]
    assert stage.model.asked == []


@pytest.mark.parametrize(
    ("item", "param"),
    [
        ({"role": "user", "content": [{"type": "input_hologram", "data": "x"}]}, "input[0].content[0]"),
        ({"type": "telepathy", "thought": "x"}, "input[0]"),
    ],
    ids=["content part", "item"],
)
async def test_what_the_gateway_does_not_know_of_an_input_is_refused_by_name_and_never_dropped(
    stage: Stage, stream: bool, item: Json, param: str
) -> None:
    answer = await stage.ask(input=[item, {"role": "user", "content": "Hi"}], stream=stream)

    assert answer.status == 400
    assert answer.body["error"]["param"].startswith(param)
    assert item.get("type", "input_hologram") in answer.body["error"]["message"]
    assert stage.model.asked == []


@pytest.mark.parametrize("form", ["both", "error", "failed"])
async def test_stream_that_begins_with_a_failure_is_failed_and_stored_as_failed(stage: Stage, form: Any) -> None:
    stage.model.play(in_dialect("openai", stream_error("No capacity.", code="rate_limit_exceeded", form=form)))

    answer = await stage.ask(input="Hi", stream=True)

    check_stream(answer.decoded)
    assert (answer.types[-1], answer.body["status"], answer.body["output"]) == ("response.failed", "failed", [])
    assert answer.body["error"]["code"] == "rate_limit_exceeded"
    assert (await stage.get(f"/v1/responses/{answer.body['id']}")).json() == answer.body


async def test_stream_without_event_lines_and_with_the_end_marker_in_its_text_is_read_whole(
    stage: Stage, stream: bool
) -> None:
    said = "data: [DONE]\n\n[DONE]\u2028event: x\u0085 end"
    body = response(message(said))
    item = body["output"][0]
    events = [
        {
            "type": "response.output_item.added",
            "output_index": 0,
            "item": {**item, "content": [], "status": "in_progress"},
        },
        *(
            {
                "type": "response.output_text.delta",
                "output_index": 0,
                "content_index": 0,
                "item_id": "theirs_1",
                "delta": one,
            }
            for one in said
        ),
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        ended(body),
    ]
    lines = b"".join(b"data:" + encode(event) + b"\r\n\r\n" for event in events) + b"data: [DONE]\r\n\r\n"
    stage.model.play(raw(200, SSE, [lines[start : start + 7] for start in range(0, len(lines), 7)]))

    answer = check(await stage.ask(input="Hi", stream=stream))

    assert answer.text == said
    assert "".join(event["delta"] for event in answer.events if event["type"].endswith("text.delta")) in (said, "")


async def test_events_that_only_one_provider_has_are_not_passed_on(stage: Stage) -> None:
    body = response(message("Hello."))
    stage.model.play(streams({"type": "codex.rate_limits", "limit": 1}, ended(body)))

    answer = check(await stage.ask(input="Hi", stream=True))

    assert "codex.rate_limits" not in answer.types
    assert answer.text == "Hello."


@pytest.mark.parametrize("status", [200, 429])
async def test_compressed_answer_that_nobody_asked_for_is_an_error_and_never_garbage(
    stage: Stage, stream: bool, status: int
) -> None:
    refusal = {"error": {"message": "Slow down.", "type": "requests", "param": None, "code": "rate_limit_exceeded"}}
    said = encode(refusal if status == 429 else response(message("Hello.")))
    stage.model.play(raw(status, {**JSON, "content-encoding": "gzip"}, [gzip.compress(said)]))

    answer = await stage.ask(input="Hi", stream=stream)

    assert answer.status == (502 if status == 200 else 429)
    assert set(answer.body["error"]) == {"message", "type", "param", "code"}
    assert "content-encoding" not in answer.headers
    asked = {name.lower(): value for name, value in stage.model.requests[0].headers.items()}
    assert asked.get("accept-encoding", "identity") == "identity"


async def test_turn_of_nothing_but_a_call_has_no_message(stage: Stage, stream: bool) -> None:
    stage.model.play(function_calls(call("f", {"x": 1})))

    answer = check(await stage.ask(input="Hi", tools=[{"type": "function", "name": "f"}], stream=stream))

    assert answer.item_types == ["function_call"]
    assert [kind for kind in answer.types if "text" in kind or "content_part" in kind] == []
