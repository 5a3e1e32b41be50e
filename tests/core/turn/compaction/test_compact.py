"""One round with compaction: which calls of what is below it makes, and what its answer begins with."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from attache_core.errors import ClientError, UpstreamError
from attache_core.events.event import Event, terminal_event
from attache_core.json_codec import Json
from attache_core.turn.compaction.checkpoint import Checkpoint, compaction_item
from attache_core.turn.compaction.compact import compact
from attache_core.turn.compaction.seal import Seal
from attache_core.turn.compaction.settings import CompactionKey
from attache_core.turn.compaction.summary import PROMPT
from attache_core.turn.compaction.terms import CompactionTerms
from attache_core.types.turn import TurnRequest
from attache_filters.testing import Calls, answering
from core.events.canonical_stream import check_stream

SEAL = Seal([CompactionKey.read(base64.b64encode(b"k" * 32).decode())])
LONG = "word " * 1000
ASKED = [{"type": "compaction", "compact_threshold": 1000}]


def user(said: str) -> Json:
    return {"type": "message", "role": "user", "content": said}


def message(said: str, **fields: Any) -> list[Event]:
    part = {"type": "output_text", "text": said, "annotations": [], "logprobs": []}
    item = {"id": "msg_1", "type": "message", "status": "completed", "role": "assistant", "content": [part]}
    usage = {"input_tokens": 10, "output_tokens": 1, "total_tokens": 11}
    response: Json = {"id": "resp_1", "status": "completed", "output": [item], "usage": usage, **fields}
    return [terminal_event(response)]


async def run(below: Calls, *items: Json, terms: CompactionTerms | None = None, **body: Any) -> Json:
    """The response of a round that is not streamed."""
    turn = TurnRequest({"model": "m", "input": list(items), **body})
    events = [event async for event in compact(turn, below, SEAL, terms or CompactionTerms())]
    assert len(events) == 1
    response: Json = events[0].data["response"]
    return response


def asked(below: Calls) -> list[Json]:
    return [turn.body for turn in below.turns]


async def test_round_without_anything_to_compact_is_passed_on_as_it_is() -> None:
    below = answering(message("Yes."))

    await run(below, user("Hi"), context_management=ASKED)

    assert asked(below) == [{"model": "m", "input": [user("Hi")]}]


async def test_summary_is_asked_for_without_tools_and_formats_and_the_round_goes_on_from_it() -> None:
    below = answering(message("A summary."), message("Yes."))
    tool = {"type": "function", "name": "f", "parameters": {}}
    options: Json = {"instructions": "Be brief.", "tools": [tool], "temperature": 0.5}

    response = await run(below, user(LONG), user("And?"), context_management=ASKED, store=False, **options)

    summary, round_ = asked(below)
    assert summary == {
        "model": "m",
        "instructions": "Be brief.",
        "input": [user(LONG), user(PROMPT)],
        "max_output_tokens": 8192,
        "store": False,
        "stream": False,
    }
    assert round_ == {
        "model": "m",
        "input": [user("A summary."), user("And?")],
        "store": False,
        **options,
    }
    checkpoint, said = response["output"]
    assert checkpoint["type"] == "compaction"
    assert SEAL.open("default", checkpoint["encrypted_content"]) == Checkpoint((), "A summary.", (user("And?"),))
    assert said["content"][0]["text"] == "Yes."
    assert response["usage"]["total_tokens"] == 22


async def test_threshold_of_the_gateway_counts_where_the_request_has_none() -> None:
    below = answering(message("A summary."), message("Yes."))

    response = await run(below, user(LONG), user("And?"), terms=CompactionTerms(threshold_tokens=1000))

    assert [item["type"] for item in response["output"]] == ["compaction", "message"]


async def test_threshold_of_the_request_goes_before_the_gateways() -> None:
    below = answering(message("Yes."))
    high = [{"type": "compaction", "compact_threshold": 100_000}]

    await run(below, user(LONG), user("And?"), terms=CompactionTerms(threshold_tokens=1000), context_management=high)

    assert len(below.turns) == 1


async def test_threshold_that_nobody_gives_is_asked_for() -> None:
    below = answering(message("Never said."))

    with pytest.raises(ClientError) as refused:
        await run(below, user("Hi"), context_management=[{"type": "compaction"}])

    assert refused.value.param == "context_management[0].compact_threshold"
    assert below.turns == []


@pytest.mark.parametrize(
    "failure",
    [
        UpstreamError("Down."),
        message("A summ", status="incomplete", incomplete_details={"reason": "max_output_tokens"}),
        message("  "),
    ],
    ids=["error", "cut short", "blank"],
)
async def test_round_goes_on_as_it_is_where_no_summary_comes(failure: Any) -> None:
    below = answering(failure, message("Yes."))

    response = await run(below, user(LONG), user("And?"), context_management=ASKED)

    assert asked(below)[1] == {"model": "m", "input": [user(LONG), user("And?")]}
    assert [item["type"] for item in response["output"]] == ["message"]


async def test_checkpoint_that_is_asked_for_is_all_of_the_answer() -> None:
    below = answering(message("A summary."))

    response = await run(below, user("Hi"), {"type": "compaction_trigger"})

    assert [item["type"] for item in response["output"]] == ["compaction"]
    opened = SEAL.open("default", response["output"][0]["encrypted_content"])
    assert opened == Checkpoint((user("Hi"),), "A summary.")
    assert response["status"] == "completed"
    assert response["usage"]["total_tokens"] == 11


async def test_checkpoint_that_is_asked_for_and_does_not_come_is_an_error() -> None:
    with pytest.raises(UpstreamError) as failed:
        await run(answering(message("")), user("Hi"), {"type": "compaction_trigger"})
    assert failed.value.code == "compaction_failed"


async def test_summary_of_what_the_model_has_no_room_for_is_made_of_the_newest() -> None:
    too_long = ClientError("Too long.", code="context_length_exceeded")
    below = answering(too_long, message("A summary."))

    await run(below, user(LONG), user("Hi"), {"type": "compaction_trigger"})

    assert [body["input"] for body in asked(below)] == [
        [user(LONG), user("Hi"), user(PROMPT)],
        [user("Hi"), user(PROMPT)],
    ]


async def test_altered_checkpoint_is_refused_before_the_model_is_asked() -> None:
    below = answering(message("Never said."))
    good = SEAL.close("default", Checkpoint((), "A summary."))

    with pytest.raises(ClientError) as refused:
        await run(below, compaction_item("cmp_1", good[:-4] + "AAA="), user("Hi"))

    assert (refused.value.code, refused.value.param) == ("invalid_encrypted_content", "input")
    assert below.turns == []


async def test_streamed_round_begins_with_the_checkpoint_and_is_one_response() -> None:
    below = answering(message("A summary."), message("Yes."))
    turn = TurnRequest({"model": "m", "input": [user(LONG), user("And?")], "stream": True, "context_management": ASKED})

    events = [event async for event in compact(turn, below, SEAL, CompactionTerms())]

    check_stream(events)
    done = [event.data["item"] for event in events if event.type == "response.output_item.done"]
    assert [item["type"] for item in done] == ["compaction", "message"]
    assert events[-1].data["response"]["output"] == done


async def test_error_of_the_round_after_the_summary_is_an_error_before_anything_was_said() -> None:
    below = answering(message("A summary."), UpstreamError("Down.", code="upstream_unavailable"))
    turn = TurnRequest({"model": "m", "input": [user(LONG), user("And?")], "stream": True, "context_management": ASKED})

    with pytest.raises(UpstreamError, match="Down"):
        [event async for event in compact(turn, below, SEAL, CompactionTerms())]
