"""What may be asked of a stored response: itself, its input, its end."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import openai
import pytest
import pytest_asyncio

from attache_core.json_codec import Json
from attache_core.testing.model_script import text
from e2e.sdk_client import open_sdk
from e2e.stage import Stage, check, open_stage

WITHOUT_PERSIST = """
chains:
  responses:
    - filter: validate
    - filter: rehydrate
    - filter: tool_dispatch
      loop: [{filter: upstream_round}]
"""
ENDPOINTS = [
    ("GET", "/v1/responses/{}"),
    ("DELETE", "/v1/responses/{}"),
    ("POST", "/v1/responses/{}/cancel"),
    ("GET", "/v1/responses/{}/input_items"),
]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def storing_nothing(placement: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    """A gateway whose chain stores no responses."""
    async with open_stage(placement, tmp_path_factory.mktemp(placement), gateway_yaml=WITHOUT_PERSIST) as stage:
        yield stage


def error(message: str, param: str | None = None, code: str | None = None) -> Json:
    return {"error": {"message": message, "type": "invalid_request_error", "param": param, "code": code}}


async def test_deleted_response_is_gone_and_cannot_be_continued_nor_can_what_continues_it(
    stage: Stage, stream: bool
) -> None:
    stage.model.play(text("one"), text("two"), text("other"))
    first = check(await stage.ask(input="1", stream=stream))
    second = check(await stage.ask(input="2", previous_response_id=first.body["id"], stream=stream))
    other = check(await stage.ask(input="3", stream=stream))

    deleted = await stage.client.delete(f"/v1/responses/{first.body['id']}")

    assert (deleted.status_code, deleted.json()) == (
        200,
        {"id": first.body["id"], "object": "response", "deleted": True},
    )
    for method, path in ENDPOINTS:
        again = await stage.client.request(method, path.format(first.body["id"]))
        assert (again.status_code, again.json()) == (404, error(f"Response with id '{first.body['id']}' not found."))
    for continued in (first, second):
        refused = await stage.ask(input="?", previous_response_id=continued.body["id"], stream=stream)
        assert (refused.status, refused.body["error"]["code"]) == (400, "previous_response_not_found")
    assert (await stage.get(f"/v1/responses/{second.body['id']}")).json() == second.body
    assert (await stage.get(f"/v1/responses/{other.body['id']}")).json() == other.body
    assert len(stage.model.asked) == 3


async def test_input_items_are_those_of_the_turn_latest_first(stage: Stage, stream: bool) -> None:
    stage.model.play(text("one"), text("two"))
    first = check(await stage.ask(input="1", stream=stream))
    given: list[Any] = [
        {"role": "user", "content": "2 \0 \ud83d"},
        {"id": "msg_mine", "type": "message", "role": "assistant", "content": "so"},
        {"role": "developer", "content": [{"type": "input_text", "text": "go"}]},
    ]
    second = check(await stage.ask(input=given, previous_response_id=first.body["id"], stream=stream))

    listed = (await stage.get(f"/v1/responses/{second.body['id']}/input_items")).json()

    ids = [item["id"] for item in listed["data"]]
    part = {"type": "output_text", "annotations": [], "logprobs": [], "text": "so"}
    shared = {"type": "message", "status": "completed"}
    assert listed == {
        "object": "list",
        "data": [
            {**shared, "id": ids[0], "role": "developer", "content": [{"type": "input_text", "text": "go"}]},
            {**shared, "id": "msg_mine", "role": "assistant", "content": [part]},
            {**shared, "id": ids[2], "role": "user", "content": [{"type": "input_text", "text": "2 \0 \ud83d"}]},
        ],
        "first_id": ids[0],
        "last_id": ids[2],
        "has_more": False,
    }
    path = f"/v1/responses/{second.body['id']}/input_items"
    page = (await stage.get(f"{path}?order=asc&limit=1&after={ids[2]}&include[]=reasoning.encrypted_content")).json()
    assert page == {**listed, "data": [listed["data"][1]], "first_id": ids[1], "last_id": ids[1], "has_more": True}


async def test_sdk_deletes_a_response_and_pages_through_its_input(stage: Stage) -> None:
    stage.model.play(text("ok"))
    given: Any = [{"role": "user", "content": f"line {number}"} for number in range(7)]
    async with open_sdk(stage) as sdk:
        response = await sdk.responses.create(model="attache-demo", input=given)

        read = [item async for item in sdk.responses.input_items.list(response.id, limit=3, order="asc")]
        await sdk.responses.delete(response.id)

        texts = [
            part.text for item in read if item.type == "message" for part in item.content if part.type == "input_text"
        ]
        assert texts == [f"line {number}" for number in range(7)]
        with pytest.raises(openai.NotFoundError):
            await sdk.responses.retrieve(response.id)


@pytest.mark.parametrize(
    ("query", "status", "expected"),
    [
        ("limit=0", 400, ("limit", "integer_below_min_value")),
        ("limit=101", 400, ("limit", "integer_above_max_value")),
        ("limit=many", 400, ("limit", "invalid_type")),
        ("order=up", 400, ("order", "invalid_value")),
        ("include=everything", 400, ("include[0]", "invalid_value")),
        ("after=msg_none", 404, ("after", None)),
    ],
)
async def test_page_that_cannot_be_had_is_refused_by_name(
    stage: Stage, query: str, status: int, expected: tuple[str, str | None]
) -> None:
    stage.model.play(text("ok"))
    response = check(await stage.ask(input="Hi"))

    refused = await stage.get(f"/v1/responses/{response.body['id']}/input_items?{query}")

    told = refused.json()["error"]
    assert (refused.status_code, (told["param"], told["code"])) == (status, expected)


async def test_cancel_of_a_response_that_has_ended_is_refused_with_what_would_be_right(stage: Stage) -> None:
    stage.model.play(text("ok"))
    response = check(await stage.ask(input="Hi"))

    refused = await stage.client.post(f"/v1/responses/{response.body['id']}/cancel")

    assert (refused.status_code, refused.json()) == (
        400,
        error(
            "Only a response that was created with 'background' set to true can be cancelled, and this gateway does "
            "not support 'background' yet. To cancel a response that is being created, close its connection."
        ),
    )


@pytest.mark.parametrize(("method", "path"), ENDPOINTS)
async def test_id_that_can_be_no_response_is_refused(stage: Stage, method: str, path: str) -> None:
    refused = await stage.client.request(method, path.format("msg_1"))

    message = "Invalid 'response_id': 'msg_1'. Expected an ID that begins with 'resp'."
    assert (refused.status_code, refused.json()) == (400, error(message, "response_id", "invalid_value"))


@pytest.mark.parametrize("store", [None, True, False])
async def test_chain_that_stores_nothing_says_so(storing_nothing: Stage, stream: bool, store: bool | None) -> None:
    storing_nothing.model.play(text("Hello."))

    answer = check(await storing_nothing.ask(input="Hi", store=store, stream=stream))

    said = [event["response"]["store"] for event in answer.events if "response" in event]
    assert {answer.body["store"], *said} == {False}
    name = answer.body["id"]
    assert (await storing_nothing.get(f"/v1/responses/{name}")).status_code == 404
    refused = await storing_nothing.ask(input="And?", previous_response_id=name, stream=stream)
    message = f"Previous response with id '{name}' not found."
    assert (refused.status, refused.body) == (
        400,
        error(message, "previous_response_id", "previous_response_not_found"),
    )
    assert len(storing_nothing.model.asked) == 1


@pytest.mark.parametrize("store", [None, True])
async def test_stored_response_says_so_wherever_it_is_shown(stage: Stage, stream: bool, store: bool | None) -> None:
    stage.model.play(text("Hello."))

    answer = check(await stage.ask(input="Hi", store=store, stream=stream))

    shown = [answer.body, (await stage.get(f"/v1/responses/{answer.body['id']}")).json()]
    shown += [event["response"] for event in answer.events if "response" in event]
    assert {response["store"] for response in shown} == {True}


async def test_chain_that_stores_nothing_reads_a_conversation_and_adds_nothing(
    storing_nothing: Stage, stream: bool
) -> None:
    storing_nothing.model.play(text("Ada."))
    items: Json = {"items": [{"role": "user", "content": "I am Ada."}]}
    name = (await storing_nothing.client.post("/v1/conversations", json=items)).json()["id"]
    before = (await storing_nothing.get(f"/v1/conversations/{name}/items")).json()

    check(await storing_nothing.ask(input="Who am I?", conversation=name, stream=stream))

    assert len(storing_nothing.model.asked[0]["input"]) == 2
    assert (await storing_nothing.get(f"/v1/conversations/{name}/items")).json() == before
