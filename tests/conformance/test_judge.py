"""The judge sees a missing field, an unknown one, a wrong type and an unknown event, wherever they stand."""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import httpx2
import pytest

from attache_core.json_codec import Json, encode
from conformance.exceptions import NEVER_NULL
from conformance.judge import Judge, NotConformantError
from conformance.schemas import EVENT_MODELS
from conformance.witness import Witness2Transport, WitnessTransport
from core.events.recordings import recorded

JUDGE = Judge()
NEWEST = "tool_search/tool-search-openai-reference-gpt-5.6-streaming.yaml"
"""A recording young enough to have every field."""


def newest_response() -> Json:
    (answer,) = recorded(NEWEST)
    response: Json = copy.deepcopy(answer.payloads[-1]["response"])
    response["output"] = [
        {
            "id": "msg_1",
            "type": "message",
            "status": "completed",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "Hi", "annotations": [], "logprobs": []}],
        }
    ]
    return response


def delta(**changes: Any) -> Json:
    return {
        "type": "response.output_text.delta",
        "item_id": "msg_1",
        "output_index": 0,
        "content_index": 0,
        "delta": "Hi",
        "logprobs": [],
        "sequence_number": 4,
        **changes,
    }


def test_newest_recording_passes_as_an_answer_of_today() -> None:
    judge = Judge()

    judge.answer(200, newest_response())
    judge.event(delta(obfuscation="x"))
    judge.answer(400, {"error": {"message": "No.", "type": "invalid_request_error", "param": None, "code": None}})

    assert judge.seen == {
        "object response": 1,
        "item message": 1,
        "event response.output_text.delta": 1,
        "object error": 1,
    }


def demanded(value: Any) -> Iterator[tuple[Any, ...]]:
    """The path of each field of an object and of the objects within."""
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, child in children:
        if isinstance(value, dict):
            yield (step,)
        yield from ((step, *rest) for rest in demanded(child))


def at(value: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        value = value[step]
    return value


OPTIONAL_HERE = {
    ("billing",),
    ("prompt_cache_options",),
    ("reasoning", "mode"),
    ("tools", 0, "defer_loading"),
    ("tools", 0, "output_schema"),
}
FREE = {("tools", 0, "parameters"), ("tools", 1, "parameters"), ("metadata",)}
"""Objects that hold what the client likes."""


def test_each_missing_field_of_a_response_is_seen() -> None:
    response = newest_response()
    unseen = []
    for path in demanded(response):
        if path in OPTIONAL_HERE or any(path[: len(free)] == free and path != free for free in FREE):
            continue
        changed = copy.deepcopy(response)
        del at(changed, path[:-1])[path[-1]]
        if passes(changed):
            unseen.append(path)

    assert unseen == []


def test_each_field_of_a_wrong_type_is_seen() -> None:
    response = newest_response()
    unseen = []
    for path in demanded(response):
        if any(path[: len(free)] == free and path != free for free in FREE) or path == ("tools", 1, "parameters"):
            continue
        changed = copy.deepcopy(response)
        at(changed, path[:-1])[path[-1]] = [[1]]
        if passes(changed):
            unseen.append(path)

    assert unseen == []


def test_null_is_refused_where_the_api_has_a_value() -> None:
    response = newest_response()

    assert [name for name in NEVER_NULL["Response"] if passes({**response, name: None})] == []


def passes(response: Json) -> bool:
    try:
        JUDGE.answer(200, response)
    except NotConformantError:
        return False
    return True


@pytest.mark.parametrize(
    ("event", "told"),
    [
        (delta(extra=1), "Additional properties are not allowed ('extra' was unexpected) (ResponseTextDeltaEvent)"),
        (delta(sequence_number="4"), "sequence_number: '4' is not of type 'integer' (Sequence Number)"),
        (delta(delta=None), "delta: None is not of type 'string' (Delta)"),
        (delta(type="response.output_text.chunk"), "the API has no such event"),
        ({"delta": "Hi"}, "the API has no such event"),
    ],
)
def test_wrong_event_is_told_by_field(event: Json, told: str) -> None:
    with pytest.raises(NotConformantError) as refused:
        JUDGE.event(event)

    assert told in str(refused.value)


def test_violation_deep_inside_is_told_of_the_object_that_was_meant() -> None:
    response = newest_response()
    del response["output"][0]["content"][0]["annotations"]

    with pytest.raises(NotConformantError) as refused:
        JUDGE.answer(200, response)

    assert refused.value.violations == [
        "output[0].content[0]: 'annotations' is a required property (ResponseOutputText)"
    ]


def test_item_of_an_unknown_type_is_seen() -> None:
    response = newest_response()
    response["output"][0]["type"] = "message_of_ours"

    with pytest.raises(NotConformantError) as refused:
        JUDGE.answer(200, response)

    (violation,) = refused.value.violations
    assert violation.startswith("output[0]: unknown type 'message_of_ours'")


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, {"message": "No."}),
        (400, {"error": {"message": "No.", "type": "invalid_request_error", "param": None}}),
        (400, {"error": {"message": "No.", "type": "invalid_request_error", "param": None, "code": 400}}),
        (500, {"error": "No."}),
        (200, {"object": "chat.completion"}),
        (200, {}),
    ],
)
def test_answer_of_another_shape_is_seen(status: int, body: Json) -> None:
    with pytest.raises(NotConformantError):
        JUDGE.answer(status, body)


def test_every_event_type_of_the_package_has_a_schema_with_its_number() -> None:
    for kind in EVENT_MODELS:
        with pytest.raises(NotConformantError) as refused:
            JUDGE.event({"type": kind})
        assert "the whole: 'sequence_number' is a required property" in str(refused.value)


GOOD_STREAM = b"event: response.output_text.delta\ndata: " + encode(delta()) + b"\n\n"


@pytest.mark.parametrize("module", [httpx, httpx2], ids=["httpx", "httpx2"])
async def test_witness_lets_a_good_stream_through_unchanged(module: Any) -> None:
    judge = Judge()

    assert await read(module, judge, GOOD_STREAM, "text/event-stream") == GOOD_STREAM
    assert judge.seen == {"event response.output_text.delta": 1}


@pytest.mark.parametrize("module", [httpx, httpx2], ids=["httpx", "httpx2"])
@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (GOOD_STREAM.replace(b"event: response.output_text.delta\n", b""), "text/event-stream"),
        (GOOD_STREAM.replace(b"sequence_number", b"number"), "text/event-stream"),
        (encode({"object": "response"}), "application/json"),
        (encode({"object": "response"}), "text/plain"),
    ],
)
async def test_witness_fails_the_client_that_reads_a_wrong_answer(module: Any, content: bytes, kind: str) -> None:
    with pytest.raises(NotConformantError):
        await read(module, JUDGE, content, kind)


@pytest.mark.parametrize("path", ["/chat/v1/responses", "/v1/responses/resp_1"])
async def test_witness_watches_every_path_of_responses(path: str) -> None:
    with pytest.raises(NotConformantError):
        await read(httpx, JUDGE, b"[]", "text/plain", path=path)


async def test_witness_leaves_other_paths_alone() -> None:
    judge = Judge()

    assert await read(httpx, judge, b"[]", "application/json", path="/v1/models") == b"[]"
    assert judge.seen == {}


async def read(module: Any, judge: Judge, content: bytes, kind: str, path: str = "/v1/responses") -> bytes:
    """What a client of `module` gets when a server answers 200 with this content."""

    async def body() -> AsyncIterator[bytes]:
        for start in range(0, len(content), 7):
            yield content[start : start + 7]

    inner = module.MockTransport(lambda _request: module.Response(200, headers={"content-type": kind}, content=body()))
    transport = {httpx: WitnessTransport, httpx2: Witness2Transport}[module](inner, judge)
    async with module.AsyncClient(transport=transport, base_url="http://gateway") as client:
        got: bytes = (await client.get(path)).content
        return got
