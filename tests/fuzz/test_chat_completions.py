"""Any answer of a server that speaks Chat Completions, and any request to it: a valid answer, or a clear error."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from attache_core.errors import ClientError
from attache_core.events.chat_completions import ChatCompletionsReader
from attache_core.json_codec import Json, encode
from attache_core.turn.chat_completions import ChatRequestOptions, chat_request
from attache_core.turn.model_request import model_request
from attache_core.turn.round import run_round
from attache_core.types.request import parse_create, validate_create
from attache_core.types.turn import TurnRequest
from attache_filters.extproc.guard import guarded
from fuzz.create_requests import WHOLE
from fuzz.damage import NOISE, damaged
from fuzz.model import Answer, FakeModel, plain, streamed
from fuzz.outcome import check_blame, check_error, check_outcome, collect

USAGE: Json = {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}


def chunk(finish_reason: str | None = None, **delta: object) -> Json:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}


def call(index: int, **function: object) -> Json:
    return {"index": index, "id": f"call_{index}", "type": "function", "function": function}


CHUNKS: Sequence[Json] = [
    chunk(role="assistant", content=""),
    chunk(reasoning_content="Hm."),
    chunk(reasoning="Hm."),
    chunk(content="Hel"),
    chunk(content="lo."),
    chunk(refusal="No."),
    chunk(tool_calls=[call(0, name="get_forecast", arguments="")]),
    chunk(tool_calls=[{"index": 0, "function": {"arguments": '{"city": "Oslo"}'}}]),
    chunk(tool_calls=[call(1, name="get_forecast", arguments="{}")]),
    chunk("stop"),
    chunk("tool_calls"),
    chunk("length"),
    chunk("content_filter"),
    {"object": "chat.completion.chunk", "choices": [], "usage": USAGE},
    {"error": {"message": "Out of memory.", "type": "server_error", "code": 500}},
]

MESSAGE: Json = {
    "role": "assistant",
    "content": "Hello.",
    "reasoning_content": "Hm.",
    "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "get_forecast", "arguments": "{}"}}],
}
COMPLETION: Json = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [{"index": 0, "message": MESSAGE, "finish_reason": "tool_calls"}],
    "usage": USAGE,
}


async def check_answer(answer: Answer, *, stream: bool) -> None:
    turn = TurnRequest({"model": "m", "input": "Hi", "stream": stream})
    reader = ChatCompletionsReader()
    outcome = await collect(guarded("round", lambda _: run_round(turn, FakeModel(answer), dialect=reader)))
    check_outcome(outcome, stream=stream)
    check_blame(outcome)


@settings(max_examples=200, deadline=None)
@given(st.lists(damaged(CHUNKS, most=1), max_size=9), st.booleans(), st.booleans())
async def test_any_chunks_are_a_valid_answer_or_an_upstream_error(
    chunks: list[Json], marked: bool, stream: bool
) -> None:
    answer = streamed(chunks)
    done = [b"data: [DONE]\n\n"] if marked else []
    await check_answer(Answer([*answer.chunks, *done], headers=answer.headers), stream=stream)


@settings(max_examples=150, deadline=None)
@given(damaged([COMPLETION]) | st.sampled_from(NOISE), st.booleans())
async def test_any_completion_is_a_valid_answer_or_an_upstream_error(completion: Json, stream: bool) -> None:
    await check_answer(plain(completion), stream=stream)


@settings(max_examples=200, deadline=None)
@given(damaged([WHOLE]))
def test_any_request_that_is_accepted_can_be_asked_or_is_refused_clearly(request: Json) -> None:
    try:
        body = parse_create(encode(request))
        validate_create(body)
        encode(chat_request(model_request(TurnRequest(body)), ChatRequestOptions()))
    except ClientError as error:
        check_error(error)
