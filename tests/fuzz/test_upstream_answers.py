"""Any bytes as an inference server's answer: one valid answer to the client, or one error; never a hang."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from attache_core.events.dialects import DialectName, dialect_for
from attache_core.json_codec import Json, encode
from attache_core.turn.round import RoundLimits, run_round
from attache_core.types.turn import TurnRequest
from attache_filters.extproc.guard import guarded
from core.events.recordings import all_recorded
from fuzz.damage import NOISE, damaged
from fuzz.model import JSON, STREAM, Answer, FakeModel, plain, streamed
from fuzz.outcome import check_blame, check_outcome, collect

DIALECTS: st.SearchStrategy[DialectName] = st.sampled_from(["auto", "openai", "vllm", "llama_cpp"])
LIMITS = RoundLimits(max_event_bytes=64 * 1024, max_response_bytes=64 * 1024)
BODIES = [answer.body for answer in all_recorded(stream=False) if answer.body and len(encode(answer.body)) < 20_000]


def thinned(payloads: list[Json]) -> list[Json]:
    """Of a run of equal types, the first two."""
    return [
        payload
        for at, payload in enumerate(payloads)
        if at < 2 or not payload["type"] == payloads[at - 1]["type"] == payloads[at - 2]["type"]
    ]


STREAMS = [thinned(answer.payloads) for answer in all_recorded(stream=True)]
PAYLOADS = [payload for payloads in STREAMS for payload in payloads]


@st.composite
def disordered(draw: st.DrawFn) -> list[Json]:
    """A recorded stream with up to four of its events damaged, removed, repeated, moved or of another stream."""
    payloads: list[Json] = list(draw(st.sampled_from(STREAMS)))
    count: int = draw(st.integers(0, 4))
    for _ in range(count):
        at: int = draw(st.integers(0, max(0, len(payloads) - 1)))
        match draw(st.sampled_from(["damage", "damage", "damage", "remove", "repeat", "move", "insert"])):
            case "damage" if payloads:
                payloads[at] = draw(damaged([payloads[at]], most=2))
            case "remove" if payloads:
                del payloads[at]
            case "repeat" if payloads:
                payloads.insert(draw(st.integers(0, len(payloads))), payloads[at])
            case "move" if payloads:
                payloads.insert(draw(st.integers(0, len(payloads) - 1)), payloads.pop(at))
            case _:
                payloads.insert(at, draw(st.sampled_from(PAYLOADS)))
    return payloads


async def check_answer(answer: Answer, dialect: DialectName, *, stream: bool) -> None:
    turn = TurnRequest({"model": "m", "input": "Hi", "stream": stream})
    outcome = await collect(
        guarded("round", lambda _: run_round(turn, FakeModel(answer), dialect=dialect_for(dialect), limits=LIMITS))
    )
    check_outcome(outcome, stream=stream)
    if answer.status < 400:
        check_blame(outcome)


@settings(max_examples=250, deadline=None)
@given(disordered(), DIALECTS, st.booleans())
async def test_any_events_in_any_order_are_a_valid_answer_or_an_upstream_error(
    payloads: list[Json], dialect: DialectName, stream: bool
) -> None:
    await check_answer(streamed(payloads), dialect, stream=stream)


@settings(max_examples=150, deadline=None)
@given(disordered(), st.data(), DIALECTS, st.booleans())
async def test_any_bytes_of_a_stream_are_a_valid_answer_or_an_upstream_error(
    payloads: list[Json], data: st.DataObject, dialect: DialectName, stream: bool
) -> None:
    body = bytearray(b"".join(streamed(payloads).chunks))
    for _ in range(data.draw(st.integers(0, 4))):
        at = data.draw(st.integers(0, len(body)))
        body[at : at + data.draw(st.integers(0, 40))] = data.draw(
            st.binary(max_size=6)
            | st.sampled_from([b"\n\n", b"\r", b"\r\n", b"data:", b"event: x\n", b"data: [DONE]\n\n"])
        )
    cuts = sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=3)))
    chunks = [bytes(body[start:end]) for start, end in zip([0, *cuts], [*cuts, len(body)], strict=True)]
    await check_answer(Answer(chunks, headers=STREAM), dialect, stream=stream)


@settings(max_examples=200, deadline=None)
@given(damaged(BODIES), DIALECTS, st.booleans())
async def test_any_damaged_json_answer_is_a_valid_answer_or_an_upstream_error(
    body: Json, dialect: DialectName, stream: bool
) -> None:
    await check_answer(plain(body), dialect, stream=stream)


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(NOISE).map(encode) | st.binary(max_size=40), st.sampled_from([JSON, STREAM, {}]), st.booleans())
async def test_any_other_body_is_an_upstream_error_or_a_failed_answer(
    body: bytes, headers: dict[str, str], stream: bool
) -> None:
    await check_answer(Answer([body], headers=headers), "auto", stream=stream)


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from([400, 401, 404, 408, 413, 422, 429, 499, 500, 502, 503, 529]),
    st.sampled_from(NOISE).map(encode)
    | st.binary(max_size=40)
    | damaged([{"error": {"message": "No.", "type": "t", "param": None, "code": "c"}}, {"detail": "No."}]).map(encode),
    st.dictionaries(st.sampled_from(["content-type", "retry-after"]), st.text(max_size=8), max_size=2),
    st.booleans(),
)
async def test_any_http_error_is_an_error_of_the_api(
    status: int, body: bytes, headers: dict[str, str], stream: bool
) -> None:
    await check_answer(Answer([body], status, headers), "auto", stream=stream)
