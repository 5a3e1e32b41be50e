"""Any JSON as a create request: an answer that clients can read, or a refusal that says what is wrong."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from attache_core.errors import AttacheError, ClientError
from attache_core.json_codec import Json, encode
from attache_core.storage.store import Store
from attache_core.testing.memory_store import MemoryStore
from attache_core.tools.builtin import builtin_tool_types
from attache_core.tools.mcp.servers import open_mcp_servers
from attache_core.tools.mcp.settings import McpSettings
from attache_core.turn.execute import Engine, execute
from attache_core.types.request import parse_create, validate_create
from attache_core.types.turn import TurnRequest
from fuzz.create_requests import WHOLE, recorded_requests
from fuzz.damage import NOISE, damaged
from fuzz.model import Answer, FakeModel, plain
from fuzz.outcome import check_error, check_outcome, collect

VALID = [WHOLE, WHOLE, *recorded_requests()]

MESSAGE: Json = {
    "type": "message",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": "Hello.", "annotations": []}],
}
CALL: Json = {"type": "function_call", "call_id": "call_9", "name": "get_forecast", "arguments": "{}"}
ANSWERS = [
    plain({"object": "response", "status": "completed", "output": [item], "usage": None}) for item in (MESSAGE, CALL)
]

ANY_JSON: st.SearchStrategy[Any] = st.recursive(
    st.sampled_from(NOISE) | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(sorted(WHOLE)) | st.text(), inner),
    max_leaves=12,
)


async def answer_to(body: Json, store: Store, model: FakeModel) -> None:
    """Run the turn of this request and look at what a client gets, and at what is kept."""
    async with open_mcp_servers(McpSettings()) as mcp:
        outcome = await collect(execute(TurnRequest(body), Engine(store, builtin_tool_types(mcp), model)))
    stream = body.get("stream") is True
    check_outcome(outcome, stream=stream, openai_types=True)
    if isinstance(outcome, AttacheError):
        assert outcome.http_status != 500
        return
    assert model.asked
    response = outcome[-1].data["response"]
    kept = await store.load_response("default", response["id"])
    assert kept == (None if body.get("store") is False else response)


@settings(max_examples=250, deadline=None)
@given(damaged(VALID), st.booleans(), st.sampled_from(ANSWERS))
async def test_any_damaged_request_is_answered_whole_or_refused_clearly(
    request: Json, stream: bool, answer: Answer
) -> None:
    try:
        body = parse_create(encode({**request, "stream": stream}))
    except ClientError as error:
        check_error(error)
        return
    await answer_to(body, MemoryStore(), FakeModel(answer))


@settings(max_examples=60, deadline=None)
@given(damaged([WHOLE], most=2), st.booleans(), st.sampled_from(ANSWERS))
async def test_any_damaged_continuation_is_answered_whole_or_refused_clearly(
    request: Json, stream: bool, answer: Answer
) -> None:
    store, model = MemoryStore(), FakeModel(answer)
    async with open_mcp_servers(McpSettings()) as mcp:
        first = await collect(
            execute(
                TurnRequest({"model": "m", "input": "Hi"}),
                Engine(store, builtin_tool_types(mcp), FakeModel(ANSWERS[0])),
            )
        )
    assert isinstance(first, list)
    previous = first[-1].data["response"]["id"]
    try:
        body = parse_create(encode({**request, "stream": stream, "previous_response_id": previous}))
    except ClientError as error:
        check_error(error)
        return
    await answer_to(body, store, model)


@settings(max_examples=200, deadline=None)
@given(ANY_JSON)
def test_any_json_is_a_request_or_refused_clearly(value: Any) -> None:
    try:
        validate_create(parse_create(encode(value)))
    except ClientError as error:
        check_error(error)


@settings(max_examples=150, deadline=None)
@given(damaged(VALID), st.data())
def test_any_damaged_bytes_are_a_request_or_refused_clearly(request: Json, data: st.DataObject) -> None:
    body = bytearray(encode(request))
    for _ in range(data.draw(st.integers(0, 3))):
        at = data.draw(st.integers(0, len(body)))
        body[at : at + data.draw(st.integers(0, 9))] = data.draw(st.binary(max_size=6))
    try:
        validate_create(parse_create(bytes(body)))
    except ClientError as error:
        check_error(error)
