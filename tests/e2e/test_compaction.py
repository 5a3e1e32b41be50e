"""Compaction through the whole gateway: the endpoint, the threshold, the trigger, and what is told of a checkpoint."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
import pytest_asyncio
from openai import AsyncOpenAI

from attache_core.json_codec import Json
from attache_core.testing.model_script import call, function_calls, http_error, replay, text, with_usage
from attache_core.turn.compaction.checkpoint import Checkpoint
from attache_core.turn.compaction.seal import Seal
from attache_core.turn.compaction.settings import CompactionKey
from attache_core.turn.compaction.summary import PROMPT
from core.events.recordings import CASSETTES, recorded
from e2e.stage import Stage, check, open_stage

KEY = "a2V5IG9mIHRoaXJ0eS10d28gYnl0ZXMgZm9yIHRlc3Q="
SEAL = Seal([CompactionKey.read(KEY)])
WORDS = "All work and no play makes a long conversation. " * 100
"""More than a thousand tokens, as estimated."""
ASKED: Json = {"context_management": [{"type": "compaction", "compact_threshold": 1000}]}
TRIGGER: Json = {"type": "compaction_trigger"}


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def compacting_stage(placement: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    yaml = f"compaction: {{keys: ['{KEY}']}}\n"
    async with open_stage(placement, tmp_path_factory.mktemp("compacting"), gateway_yaml=yaml) as stage:
        yield stage


@pytest.fixture
def compacting(compacting_stage: Stage) -> Stage:
    compacting_stage.model.play()
    return compacting_stage


def user(said: str) -> Json:
    return {"type": "message", "role": "user", "content": said}


def assistant(said: str) -> Json:
    return {"type": "message", "role": "assistant", "content": said}


def opened(item: Json) -> Checkpoint:
    assert item["type"] == "compaction"
    return SEAL.open("default", item["encrypted_content"])


def told(items: list[Json]) -> list[tuple[str, str]]:
    """Role and text of the messages that reached the model, and type and text of its other items."""
    return [(item.get("role") or item["type"], _text(item)) for item in items]


def _text(item: Json) -> str:
    said = item.get("content") or item.get("arguments") or item.get("output") or ""
    return said if isinstance(said, str) else "".join(part["text"] for part in said)


async def compact(stage: Stage, **body: Any) -> httpx.Response:
    return await stage.client.post("/v1/responses/compact", json={"model": "attache-demo", **body})


async def test_window_that_was_compacted_is_sent_on_in_place_of_the_conversation(
    compacting: Stage, stream: bool
) -> None:
    compacting.model.play(with_usage(100, 10, text("They talked about tea.")), text("Tea."))

    answer = await compact(compacting, input=[user("Tea?"), assistant("Yes."), user("Green.")])

    window = answer.json()
    assert (answer.status_code, window["object"], window["usage"]["total_tokens"]) == (200, "response.compaction", 110)
    assert [item["type"] for item in window["output"]] == ["message", "message", "compaction"]
    assert "tea" not in window["output"][-1]["encrypted_content"]
    next_turn = check(await compacting.ask(input=[*window["output"], user("What was it about?")], stream=stream))
    assert next_turn.text == "Tea."
    assert told(compacting.model.asked[1]["input"]) == [
        ("user", "Tea?"),
        ("user", "Green."),
        ("assistant", "They talked about tea."),
        ("user", "What was it about?"),
    ]


async def test_stored_conversation_is_compacted_by_the_id_of_its_last_response_and_nothing_is_stored(
    compacting: Stage,
) -> None:
    compacting.model.play(text("Yes."), text("A summary."))
    first = check(await compacting.ask(input="Tea?"))
    before = compacting.stored_turns()

    answer = await compact(compacting, previous_response_id=first.body["id"])

    assert [item["type"] for item in answer.json()["output"]] == ["message", "compaction"]
    assert told(compacting.model.asked[1]["input"]) == [("user", "Tea?"), ("assistant", "Yes."), ("user", PROMPT)]
    assert compacting.stored_turns() == before


async def test_call_that_waits_for_its_output_stays_and_is_answered_after_the_compaction(compacting: Stage) -> None:
    compacting.model.play(function_calls(call("weather", {})), text("They want snow."), text("Snow."))
    tools = [{"type": "function", "name": "weather", "parameters": {"type": "object", "properties": {}}}]
    first = check(await compacting.ask(input="Weather?", tools=tools))

    window = (await compact(compacting, previous_response_id=first.body["id"])).json()["output"]

    assert [item["type"] for item in window] == ["message", "compaction", "function_call"]
    output = {"type": "function_call_output", "call_id": window[-1]["call_id"], "output": "snow"}
    check(await compacting.ask(input=[*window, output], tools=tools))
    assert [kind for kind, _ in told(compacting.model.asked[2]["input"])] == [
        "user",
        "assistant",
        "function_call",
        "function_call_output",
    ]


async def test_list_of_tools_stays_beside_the_checkpoint_and_goes_on_to_count(compacting: Stage, stream: bool) -> None:
    compacting.model.play(
        function_calls(call("echo", {"text": "hi"})), text("Echoed."), text("A summary."), text("Yes.")
    )
    tools = [compacting.mcp_tool()]
    first = check(await compacting.ask(input="Echo.", tools=tools, stream=stream))

    window = (await compact(compacting, previous_response_id=first.body["id"])).json()["output"]
    later = check(await compacting.ask(input=[*window, user("And?")], tools=tools, stream=stream))

    assert [item["type"] for item in window] == ["message", "mcp_list_tools", "compaction"]
    assert window[1] == first.body["output"][0]
    assert later.item_types == ["message"]
    assert told(compacting.model.asked[3]["input"]) == [
        ("user", "Echo."),
        ("assistant", "A summary."),
        ("user", "And?"),
    ]


@pytest.mark.parametrize(
    ("body", "param", "code"),
    [
        ({"model": None, "input": "Hi"}, "model", "invalid_type"),
        ({}, None, "missing_required_parameter"),
        ({"input": "Hi", "stream": True}, "stream", "unsupported_parameter"),
        ({"input": "Hi", "conversation": "conv_1"}, "conversation", "unsupported_parameter"),
        ({"input": [{"type": "no_such_item"}]}, "input[0]", "invalid_value"),
        ({"previous_response_id": "resp_unknown"}, "previous_response_id", "previous_response_not_found"),
        ({"input": [{"type": "compaction", "encrypted_content": "x"}]}, "input", "invalid_encrypted_content"),
    ],
)
async def test_request_that_cannot_be_compacted_is_refused(
    compacting: Stage, body: Json, param: str | None, code: str
) -> None:
    answer = await compact(compacting, **body)

    error = answer.json()["error"]
    assert (answer.status_code, error["param"], error["code"]) == (400, param, code)
    assert compacting.model.asked == []


async def test_request_without_a_model_or_with_too_many_items_is_refused(compacting: Stage) -> None:
    for body, param in (({"input": "Hi"}, "model"), ({"model": "m", "input": [user("Hi")] * 10_001}, "input")):
        answer = await compacting.client.post("/v1/responses/compact", json=body)
        assert (answer.status_code, answer.json()["error"]["param"]) == (400, param)
    assert compacting.model.asked == []


async def test_failure_of_the_model_is_the_answer_of_the_endpoint(compacting: Stage) -> None:
    compacting.model.play(http_error(429, message="Slow down."), text(""))

    assert (await compact(compacting, input="Hi")).status_code == 429
    failed = await compact(compacting, input="Hi")
    assert (failed.status_code, failed.json()["error"]["code"]) == (502, "compaction_failed")


async def test_sdk_compacts_and_goes_on(compacting: Stage) -> None:
    compacting.model.play(text("A summary."), text("Yes."))
    async with AsyncOpenAI(base_url=f"{compacting.gateway.url}/v1", api_key="none", max_retries=0) as client:
        window = await client.responses.compact(model="m", input="Tea?")
        # The package's types call the user's messages output of the model, and it warns of that.
        items: Any = [*(item.to_dict(warnings=False) for item in window.output), user("Really?")]
        answer = await client.responses.create(model="m", input=items)

    assert answer.output_text == "Yes."
    assert told(compacting.model.asked[1]["input"])[1] == ("assistant", "A summary.")


async def test_conversation_that_outgrows_its_threshold_goes_on_from_a_summary(compacting: Stage, stream: bool) -> None:
    compacting.model.play(
        text("First."),
        with_usage(100, 10, text("A summary.")),
        with_usage(20, 5, text("Second.")),
        text("Third."),
    )
    first = check(await compacting.ask(input=WORDS, stream=stream))

    second = check(await compacting.ask(input="And?", previous_response_id=first.body["id"], stream=stream, **ASKED))
    third = check(await compacting.ask(input="So?", previous_response_id=second.body["id"], stream=stream, **ASKED))

    assert second.item_types == ["compaction", "message"]
    assert second.body["usage"]["total_tokens"] == 135
    window = [("user", "A summary."), ("user", "And?")]
    assert [told(asked["input"]) for asked in compacting.model.asked[1:]] == [
        [("user", WORDS), ("assistant", "First."), ("user", PROMPT)],
        window,
        [*window, ("assistant", "Second."), ("user", "So?")],
    ]
    assert third.text == "Third."
    stored = (await compacting.get(f"/v1/responses/{second.body['id']}")).json()
    assert stored["output"] == second.body["output"]


async def test_conversation_object_goes_on_from_a_summary_and_keeps_every_item(compacting: Stage, stream: bool) -> None:
    compacting.model.play(text("First."), text("A summary."), text("Second."), text("Third."))
    created = (await compacting.client.post("/v1/conversations", json={})).json()["id"]

    for said in (WORDS, "And?", "So?"):
        check(await compacting.ask(input=said, conversation=created, stream=stream, **ASKED))

    assert told(compacting.model.asked[3]["input"]) == [
        ("user", "A summary."),
        ("user", "And?"),
        ("assistant", "Second."),
        ("user", "So?"),
    ]
    items = (await compacting.get(f"/v1/conversations/{created}/items?order=asc")).json()["data"]
    assert [item["type"] for item in items] == [*["message"] * 3, "compaction", *["message"] * 3]


async def test_client_that_keeps_no_more_than_the_checkpoint_goes_on_as_well(compacting: Stage, stream: bool) -> None:
    compacting.model.play(text("A summary."), text("Yes."), text("No."))
    items = [user("short"), assistant(WORDS), user("Tea?")]
    first = check(await compacting.ask(input=items, store=False, stream=stream, **ASKED))

    check(await compacting.ask(input=[*first.body["output"], user("Cake?")], store=False, stream=stream, **ASKED))

    assert told(compacting.model.asked[2]["input"]) == [
        ("user", "short"),
        ("assistant", "A summary."),
        ("user", "Tea?"),
        ("assistant", "Yes."),
        ("user", "Cake?"),
    ]


async def test_results_of_tools_give_way_in_the_middle_of_a_turn(compacting: Stage, stream: bool) -> None:
    compacting.model.play(
        function_calls(call("echo", {"text": WORDS})),
        text("Much was echoed."),
        function_calls(call("echo", {"text": "more"})),
        text("Done."),
        text("Again."),
    )
    tools = [compacting.mcp_tool()]

    answer = check(await compacting.ask(input="Echo.", tools=tools, stream=stream, **ASKED))
    later = await compacting.ask(input="Again.", tools=tools, previous_response_id=answer.body["id"], stream=stream)

    assert answer.item_types == ["mcp_list_tools", "mcp_call", "compaction", "mcp_call", "message"]
    assert opened(answer.body["output"][2]) == Checkpoint(
        (), "Much was echoed.", ({"type": "message", "role": "user", "content": [_part("Echo.")]},)
    )
    kinds = [kind for kind, _ in told(compacting.model.asked[3]["input"])]
    assert kinds == ["user", "user", "function_call", "function_call_output"]
    assert check(later).item_types == ["message"]
    assert [kind for kind, _ in told(compacting.model.asked[4]["input"])] == [*kinds, "assistant", "user"]


def _part(said: str) -> Json:
    return {"type": "input_text", "text": said}


async def test_checkpoint_on_request_is_the_answer_and_the_request_is_not_kept(compacting: Stage, stream: bool) -> None:
    compacting.model.play(text("A summary."), text("Yes."))

    first = check(await compacting.ask(input=[user("Tea?"), TRIGGER], stream=stream))
    check(await compacting.ask(input="And?", previous_response_id=first.body["id"], stream=stream))

    assert first.item_types == ["compaction"]
    assert told(compacting.model.asked[1]["input"]) == [("user", "Tea?"), ("assistant", "A summary."), ("user", "And?")]
    items = (await compacting.get(f"/v1/responses/{first.body['id']}/input_items")).json()["data"]
    assert [item["type"] for item in items] == ["message"]


async def test_request_for_a_checkpoint_that_is_not_at_the_end_is_refused(compacting: Stage, stream: bool) -> None:
    answer = await compacting.ask(input=[TRIGGER, user("Tea?")], stream=stream)

    assert (answer.status, answer.body["error"]["param"]) == (400, "input[0]")
    assert compacting.model.asked == []


async def test_altered_checkpoint_is_refused_before_the_model_is_asked(compacting: Stage, stream: bool) -> None:
    text_ = SEAL.close("default", Checkpoint((), "A summary."))
    for wrong in (text_[:-6] + "AAAAA=", SEAL.close("another tenant", Checkpoint((), "A summary."))):
        item = {"type": "compaction", "encrypted_content": wrong}
        answer = await compacting.ask(input=[item, user("And?")], stream=stream)

        assert (answer.status, answer.body["error"]["code"]) == (400, "invalid_encrypted_content")
    assert compacting.model.asked == []


async def test_gateway_without_keys_says_so(stage: Stage, stream: bool) -> None:
    endpoint = await compact(stage, input="Hi")
    assert (endpoint.status_code, endpoint.json()["error"]["code"]) == (400, "compaction_not_configured")

    managed = await stage.ask(input="Hi", stream=stream, **ASKED)
    assert (managed.status, managed.body["error"]["param"]) == (400, "context_management")
    assert stage.model.asked == []


@pytest.mark.parametrize("name", ["basic", "tool-prior", "followup"])
async def test_model_is_asked_what_it_was_asked_in_the_recordings(compacting: Stage, name: str) -> None:
    path = f"compaction/compact-{name}-gpt-4o-nonstreaming.yaml"
    [turn] = recorded(path)
    assert turn.body is not None
    asked = turn.request["input"]
    compacting.model.play(replay(CASSETTES / path))

    if name == "followup":
        answer = check(await compacting.ask(input=_as_sent(asked), store=False))
        assert answer.text == "BANANA-CASSETTE"
    else:
        window = (await compact(compacting, input=_as_sent(asked[:-1]))).json()
        assert opened(window["output"][-1]).summary == turn.body["output"][0]["content"][0]["text"]
        assert window["usage"] == turn.body["usage"]
        asked = [*asked[:-1], user(PROMPT)]

    assert told(compacting.model.asked[0]["input"]) == told(asked)


def _as_sent(asked: list[Json]) -> list[Json]:
    """What a client sends so that the model is asked this: a message in parts is how it was told of a checkpoint."""
    message, checkpoint, *newer = asked
    if isinstance(checkpoint["content"], str):
        return asked
    sealed = SEAL.close("default", Checkpoint((message,), _text(checkpoint)))
    return [message, {"type": "compaction", "encrypted_content": sealed}, *newer]
