"""`truncation: auto`: the oldest items go, whole, until the model takes the rest."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attache_core.errors import ClientError, UpstreamError
from attache_core.events.event import Event
from attache_core.json_codec import Json, encode
from attache_core.turn.pending_calls import check_calls
from attache_core.turn.truncation import MAX_TRUNCATIONS, truncating
from attache_core.types.turn import TurnRequest

SAID = Event("response.output_item.added", {"type": "response.output_item.added"})
BEGUN = [
    Event(kind, {"type": kind, "response": {"status": "in_progress"}})
    for kind in ("response.created", "response.in_progress")
]


class Model:
    """What is below: takes inputs of up to `room` bytes, and says of others that they are too long."""

    def __init__(self, room: int, *, in_stream: bool = False) -> None:
        self.room = room
        self.asked: list[TurnRequest] = []
        self._in_stream = in_stream

    async def __call__(self, turn: TurnRequest) -> AsyncGenerator[Event, None]:
        self.asked.append(turn)
        fits = len(encode(turn.body["input"])) <= self.room
        if not fits and not self._in_stream:
            raise ClientError("Too long.", code="context_length_exceeded", param="input")
        for event in BEGUN:
            yield event
        if fits:
            yield SAID
            return
        error = {"code": "context_length_exceeded", "message": "Too long."}
        failed = {"type": "response.failed", "response": {"status": "failed", "error": error}}
        yield Event("response.failed", failed)

    @property
    def inputs(self) -> list[list[Json]]:
        return [turn.body["input"] for turn in self.asked]


def user(said: str) -> Json:
    return {"type": "message", "role": "user", "content": said}


def assistant(said: str) -> Json:
    return {"type": "message", "role": "assistant", "content": said}


def called(call_id: str, output: str = "done") -> list[Json]:
    return [
        {"type": "reasoning", "summary": []},
        {"type": "function_call", "call_id": call_id, "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": call_id, "output": output},
    ]


def turn(items: object, truncation: str = "auto") -> TurnRequest:
    return TurnRequest({"model": "m", "input": items, "truncation": truncation})


async def ask(model: Model, *turns: TurnRequest) -> list[Event]:
    below = truncating(model)
    return [event for each in turns async for event in below(each)]


CONVERSATION = [user("one " * 20), assistant("two"), user("three"), *called("call_1", "four " * 20), assistant("five"),
                user("six")]  # fmt: skip


async def test_input_that_fits_is_asked_once_as_it_is() -> None:
    model = Model(10_000)

    assert await ask(model, turn(CONVERSATION)) == [*BEGUN, SAID]

    assert [asked.body for asked in model.asked] == [{"model": "m", "input": CONVERSATION}]


@pytest.mark.parametrize("in_stream", [False, True])
async def test_input_that_does_not_fit_loses_its_oldest_items_and_is_asked_again(in_stream: bool) -> None:
    model = Model(450, in_stream=in_stream)

    assert await ask(model, turn(CONVERSATION)) == [*BEGUN, SAID]

    assert model.inputs == [CONVERSATION, CONVERSATION[2:]]


async def test_call_goes_with_its_output_and_the_reasoning_before_it() -> None:
    model = Model(200)

    await ask(model, turn(CONVERSATION))

    assert model.inputs[-1] == CONVERSATION[-1:]


async def test_orders_and_the_newest_message_of_the_user_stay() -> None:
    orders = {"type": "message", "role": "system", "content": "Be brief."}
    items = [orders, user("old " * 50), user("now"), *called("call_1", "a " * 200), *called("call_2")]
    model = Model(450)

    await ask(model, turn(items))

    assert model.inputs[-1] == [orders, user("now"), *called("call_2")]


async def test_checkpoint_stays_and_what_it_stands_for_goes_first() -> None:
    checkpoint = {"type": "compaction", "encrypted_content": "sealed"}
    model = Model(200)

    await ask(model, turn([user("old " * 50), assistant("x"), checkpoint, user("a " * 100), assistant("b"), user("c")]))

    assert model.inputs == [
        [checkpoint, user("a " * 100), assistant("b"), user("c")],
        [checkpoint, user("c")],
    ]


async def test_later_round_begins_where_the_last_one_ended() -> None:
    model = Model(520)

    await ask(model, turn(CONVERSATION), turn([*CONVERSATION, assistant("seven")]))

    assert model.inputs[2:] == [[*CONVERSATION[2:], assistant("seven")]]


@pytest.mark.parametrize("in_stream", [False, True])
async def test_error_is_the_servers_where_nothing_more_can_go(in_stream: bool) -> None:
    model = Model(10, in_stream=in_stream)
    items = [user(f"message {number}") for number in range(100)]

    if in_stream:
        assert [event.type for event in await ask(model, turn(items))][-1] == "response.failed"
    else:
        with pytest.raises(ClientError, match="Too long"):
            await ask(model, turn(items))

    assert len(model.asked) == MAX_TRUNCATIONS + 1
    assert model.inputs[-1][-1] == items[-1]


async def test_text_that_does_not_fit_is_not_cut() -> None:
    asked: list[TurnRequest] = []

    async def below(turn: TurnRequest) -> AsyncGenerator[Event, None]:
        asked.append(turn)
        for error in (ClientError("Too long.", code="context_length_exceeded"),):
            raise error
        yield SAID

    with pytest.raises(ClientError):
        [event async for event in truncating(below)(turn("A long text."))]
    assert [each.body for each in asked] == [{"model": "m", "input": "A long text."}]


async def test_turn_that_does_not_ask_for_it_is_not_truncated() -> None:
    model = Model(450)

    with pytest.raises(ClientError):
        await ask(model, turn(CONVERSATION, "disabled"))
    assert [asked.body["truncation"] for asked in model.asked] == ["disabled"]


async def test_other_errors_are_not_answered_by_truncation() -> None:
    async def below(turn: TurnRequest) -> AsyncGenerator[Event, None]:
        for error in (UpstreamError("Down.", code="upstream_unavailable"),):
            raise error
        yield SAID

    with pytest.raises(UpstreamError):
        [event async for event in truncating(below)(turn(CONVERSATION))]


SEGMENTS = st.lists(st.sampled_from(["user", "assistant", "called"]), min_size=1, max_size=12)


def conversation(kinds: list[str]) -> list[Json]:
    """One that the user begins, of turns and rounds of these kinds."""
    said = [user("first " * 5)]
    for number, kind in enumerate(kinds):
        words = "word " * (number % 4)
        match kind:
            case "user":
                said.append(user(words))
            case "assistant":
                said.append(assistant(words))
            case _:
                said += called(f"call_{number}", words)
    return said


@given(SEGMENTS, st.integers(0, 1500))
async def test_whatever_fits_is_the_end_of_the_conversation_with_every_pair_whole(kinds: list[str], room: int) -> None:
    items = conversation(kinds)
    model = Model(room)
    with suppress(ClientError):
        await ask(model, turn(items))

    newest = max(place for place, item in enumerate(items) if item.get("role") == "user")
    for told in model.inputs:
        check_calls(told)
        cut = len(items) - len(told)
        assert told in (items[cut:], [items[newest], *items[cut + 1 :]])
        assert items[newest] in told
        assert told[0].get("role") == "user"
