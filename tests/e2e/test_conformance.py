"""Every recorded answer of an inference server, and what none of them says, comes out of the gateway as the API has it.

That the fields are right is checked by the stage's client, in every test; here are the answers that scripts do not say.
"""

from __future__ import annotations

import pytest

from attache_core.json_codec import Json, encode
from attache_core.testing.model_script import replay, text
from conformance.judge import judge_of_answers
from core.events.canonical_stream import check_stream
from core.events.recordings import CASSETTES, Recorded, all_recorded
from e2e.sdk_client import open_sdk
from e2e.stage import Stage

RECORDINGS = [
    answer
    for answer in all_recorded(stream=True)
    if not answer.name.startswith("websocket/") and "-vllm-gemma4.yaml" not in answer.name
]
"""Every stream that came over HTTP and was not shortened by hand."""


@pytest.mark.parametrize("answer", RECORDINGS, ids=lambda answer: answer.name)
async def test_recorded_stream_is_answered_as_the_api_would(stage: Stage, stream: bool, answer: Recorded) -> None:
    name, _, turn = answer.name.rpartition("#")
    stage.model.play(replay(CASSETTES / name, int(turn)))

    answered = await stage.ask(input="Hi", stream=stream, include=["reasoning.encrypted_content"])

    if stream:
        check_stream(answered.decoded)
    ended = answer.payloads[-1]["response"].get("status")
    if stream or ended != "failed":
        assert (answered.status, answered.body["status"]) == (200, ended)
    else:
        assert answered.status >= 400
    assert len(stage.model.asked) == 1


async def test_clients_of_the_tests_are_watched(stage: Stage) -> None:
    seen = judge_of_answers().seen
    before = seen["object response"]
    stage.model.play(text("Hello."), text("Hello."))

    await stage.ask(input="Hi")
    async with open_sdk(stage) as sdk:
        await sdk.responses.create(model="m", input="Hi")

    assert seen["object response"] == before + 2


REFUSAL = {"type": "refusal", "refusal": "I cannot help with that."}
LOGPROB = {"token": "Hi", "bytes": [72, 105], "logprob": -0.25, "top_logprobs": []}


async def test_refusal_of_the_model_is_streamed_as_one(stage: Stage, stream: bool) -> None:
    stage.model.play(
        replay(
            message_lines(
                REFUSAL,
                {"type": "response.refusal.delta", "delta": "I cannot help"},
                {"type": "response.refusal.delta", "delta": " with that."},
                {"type": "response.refusal.done", "refusal": REFUSAL["refusal"]},
            )
        )
    )

    answered = await stage.ask(input="Hi", stream=stream)

    assert answered.body["output"][0]["content"] == [REFUSAL]
    if stream:
        check_stream(answered.decoded)
        assert [kind for kind in answered.types if "refusal" in kind] == [
            "response.refusal.delta",
            "response.refusal.delta",
            "response.refusal.done",
        ]


async def test_logprobs_of_the_model_are_told(stage: Stage, stream: bool) -> None:
    part = {"type": "output_text", "text": "Hi", "annotations": [], "logprobs": [LOGPROB]}
    stage.model.play(
        replay(
            message_lines(
                part,
                {"type": "response.output_text.delta", "delta": "Hi", "logprobs": [LOGPROB]},
                {"type": "response.output_text.done", "text": "Hi", "logprobs": [LOGPROB]},
            )
        )
    )

    answered = await stage.ask(input="Hi", stream=stream, include=["message.output_text.logprobs"], top_logprobs=0)

    assert answered.body["output"][0]["content"] == [part]
    if stream:
        check_stream(answered.decoded)


async def test_tools_that_cannot_be_listed_are_told_as_a_failed_list(stage: Stage, stream: bool) -> None:
    stage.model.play(text("Without tools, then."))
    nowhere = stage.mcp_tool("nowhere", server_url="http://127.0.0.1:1/mcp")

    answered = await stage.ask(input="Hi", tools=[nowhere], stream=stream)

    assert answered.item_types == ["mcp_list_tools", "message"]
    if stream:
        check_stream(answered.decoded)
        assert answered.types.count("response.mcp_list_tools.failed") == 1


def message_lines(part: Json, *told: Json) -> list[str]:
    """The stream of an inference server: a message of one part, which is told by these events."""
    at: Json = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    message: Json = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [part]}
    opened = {**message, "status": "in_progress", "content": []}
    empty = {name: "" if name in ("text", "refusal") else value for name, value in part.items()}
    response = {"id": "resp_1", "object": "response", "created_at": 1, "model": "m", "output": []}
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    events: list[Json] = [
        {"type": "response.created", "response": {**response, "status": "in_progress"}},
        {"type": "response.output_item.added", "output_index": 0, "item": opened},
        {"type": "response.content_part.added", **at, "part": empty},
        *({**event, **at} for event in told),
        {"type": "response.content_part.done", **at, "part": part},
        {"type": "response.output_item.done", "output_index": 0, "item": message},
        {
            "type": "response.completed",
            "response": {**response, "status": "completed", "output": [message], "usage": usage},
        },
    ]
    return [f"data: {encode({**event, 'sequence_number': number}).decode()}\n\n" for number, event in enumerate(events)]
