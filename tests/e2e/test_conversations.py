"""The endpoints of conversations, as OpenAI's API answers them."""

from __future__ import annotations

import time
from typing import Any

import openai
import pytest

from attache_core.json_codec import Json
from attache_core.testing.model_script import text
from e2e.recorded_conversation import Replay, recorded_turns
from e2e.sdk_client import open_sdk
from e2e.stage import Stage, check

RECORDINGS = [
    "conversation_items/conversations-branch-openai.yaml",
    "conversation_items/conversations-edge-cases-openai.yaml",
    "conversation_items/conversations-pagination-openai.yaml",
    "conversations/conv-multi-branch-multi-turn-gpt-4o-nonstreaming.yaml",
    "conversations/conv-store-false-followup-gpt-4o-nonstreaming.yaml",
    "conversations/conv-two-turn-gpt-4o-streaming.yaml",
]


def error(message: str, param: str | None = None, code: str | None = None) -> Json:
    return {"error": {"message": message, "type": "invalid_request_error", "param": param, "code": code}}


async def create(stage: Stage, *texts: str, **fields: Any) -> str:
    """A new conversation of user messages; its id."""
    items = [{"role": "user", "content": said} for said in texts]
    answer = await stage.client.post("/v1/conversations", json={"items": items, **fields})
    assert answer.status_code == 200, answer.text
    name: str = answer.json()["id"]
    return name


@pytest.mark.parametrize("recording", RECORDINGS)
async def test_recording_of_openai_is_answered_alike(stage: Stage, recording: str) -> None:
    replay = Replay(stage)
    for turn in recorded_turns(recording):
        await replay.play(turn)


async def test_sdk_creates_reads_changes_and_deletes_a_conversation(stage: Stage) -> None:
    async with open_sdk(stage) as sdk:
        created = await sdk.conversations.create(metadata={"topic": "demo"})
        assert (created.object, created.metadata, created.id[:5]) == ("conversation", {"topic": "demo"}, "conv_")
        assert abs(created.created_at - time.time()) < 60
        assert await sdk.conversations.retrieve(created.id) == created

        updated = await sdk.conversations.update(created.id, metadata={"topic": "other"})
        assert updated == created.model_copy(update={"metadata": {"topic": "other"}})
        assert (await sdk.conversations.update(created.id, metadata=None)).metadata == {}

        deleted = await sdk.conversations.delete(created.id)
        assert (deleted.id, deleted.object, deleted.deleted) == (created.id, "conversation.deleted", True)
        with pytest.raises(openai.NotFoundError):
            await sdk.conversations.retrieve(created.id)


async def test_sdk_pages_through_the_items_of_a_conversation(stage: Stage) -> None:
    async with open_sdk(stage) as sdk:
        conversation = await sdk.conversations.create(items=[{"role": "user", "content": "0"}])
        for number in range(1, 7):
            added = await sdk.conversations.items.create(
                conversation.id, items=[{"type": "message", "role": "user", "content": f"{number}"}]
            )
            assert [item.type for item in added.data] == ["message"]

        read = [item async for item in sdk.conversations.items.list(conversation.id, limit=3, order="asc")]
        latest = await sdk.conversations.items.list(conversation.id, limit=1)
        one: Any = await sdk.conversations.items.retrieve(read[2].id or "", conversation_id=conversation.id)
        left = await sdk.conversations.items.delete(read[2].id or "", conversation_id=conversation.id)

        said = [
            part.text for item in read if item.type == "message" for part in item.content if part.type == "input_text"
        ]
        assert said == [str(number) for number in range(7)]
        assert (latest.data[0], latest.has_more, one, left) == (read[6], True, read[2], conversation)
        rest = [item async for item in sdk.conversations.items.list(conversation.id, order="asc")]
        assert rest == read[:2] + read[3:]


async def test_text_of_an_item_survives_exactly(stage: Stage) -> None:
    body = b'{"items": [{"role": "user", "content": "NUL \\u0000, a lone surrogate \\ud83d"}]}'
    answer = await stage.client.post("/v1/conversations", content=body, headers={"content-type": "application/json"})

    listed = (await stage.get(f"/v1/conversations/{answer.json()['id']}/items")).json()

    assert listed["data"][0]["content"] == [{"type": "input_text", "text": "NUL \0, a lone surrogate \ud83d"}]


@pytest.mark.parametrize(
    ("path", "body", "expected"),
    [
        ("", {"items": [{"role": "user", "content": "x"}] * 21}, (400, "items", "array_above_max_length")),
        ("", {"items": "x"}, (400, "items", "invalid_type")),
        ("", {"items": [{"type": "nothing"}]}, (400, "items[0]", "invalid_value")),
        ("", {"metadata": {"k": 1}}, (400, "metadata.k", "invalid_type")),
        ("", {"items": [{"id": "msg_none"}]}, (404, "items", None)),
        ("/{}", {}, (400, "metadata", "missing_required_parameter")),
        ("/{}/items", {}, (400, "items", "missing_required_parameter")),
        ("/{}/items", {"items": [{"role": "user"}]}, (400, "items[0].content", "missing_required_parameter")),
        ("/{}/items", [], (400, None, None)),
    ],
)
async def test_request_that_is_wrong_is_refused_by_name_and_changes_nothing(
    stage: Stage, path: str, body: Any, expected: tuple[int, str | None, str | None]
) -> None:
    name = await create(stage, "Hi", metadata={"k": "v"})

    refused = await stage.client.post(f"/v1/conversations{path.format(name)}", json=body)

    told = refused.json()["error"]
    assert (refused.status_code, told["param"], told["code"]) == expected
    assert len((await stage.get(f"/v1/conversations/{name}/items")).json()["data"]) == 1
    assert (await stage.get(f"/v1/conversations/{name}")).json()["metadata"] == {"k": "v"}


async def test_item_that_is_not_there_is_404_and_so_is_a_conversation(stage: Stage) -> None:
    name = await create(stage)
    for method in ("GET", "DELETE"):
        missing = await stage.client.request(method, f"/v1/conversations/{name}/items/msg_none")
        assert (missing.status_code, missing.json()) == (
            404,
            error("Item with id 'msg_none' not found in this conversation."),
        )
        unknown = await stage.client.request(method, "/v1/conversations/conv_none/items/msg_none")
        assert (unknown.status_code, unknown.json()) == (404, error("Conversation with id 'conv_none' not found."))
        wrong = await stage.client.request(method, "/v1/conversations/resp_1")
        message = "Invalid 'conversation_id': 'resp_1'. Expected an ID that begins with 'conv'."
        assert (wrong.status_code, wrong.json()) == (400, error(message, "conversation_id", "invalid_value"))


async def test_item_of_a_response_and_of_another_conversation_can_be_added_by_its_id(stage: Stage) -> None:
    stage.model.play(text("Said."))
    response = check(await stage.ask(input="Hi"))
    answered = response.body["output"][0]
    first = await create(stage, "There")
    there = (await stage.get(f"/v1/conversations/{first}/items")).json()["data"][0]
    second = await create(stage)

    added = await stage.client.post(
        f"/v1/conversations/{second}/items", json={"items": [{"id": answered["id"]}, {"id": there["id"]}]}
    )

    assert added.json()["data"] == [answered, there]
