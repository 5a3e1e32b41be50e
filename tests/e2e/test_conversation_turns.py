"""Turns in a conversation: what they read, what they add, and that two at once never meet."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from attache_core.json_codec import Json
from attache_core.testing.model_script import Reply, held, stream_error, text
from attache_core.testing.model_server import ReceivedRequest
from e2e.sdk_client import open_sdk
from e2e.stage import WAIT_S, Stage, check, open_stage
from e2e.test_conversations import create

NO_WAIT = """
chains:
  responses:
    - {filter: validate}
    - {filter: persist, conversation_wait_s: 0}
    - {filter: rehydrate}
    - {filter: tool_dispatch, loop: [{filter: upstream_round}]}
"""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def impatient_stage(placement: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    """A gateway where a conversation that is held is not waited for."""
    async with open_stage(placement, tmp_path_factory.mktemp(placement), gateway_yaml=NO_WAIT) as stage:
        yield stage


@pytest.fixture
def impatient(impatient_stage: Stage) -> Stage:
    impatient_stage.model.play()
    return impatient_stage


async def items_of(stage: Stage, name: str) -> list[Json]:
    """The items of a conversation, oldest first."""
    listed = await stage.get(f"/v1/conversations/{name}/items?order=asc&limit=100")
    assert listed.status_code == 200, listed.text
    found: list[Json] = listed.json()["data"]
    return found


def said(items: list[Json]) -> list[str]:
    """The texts of messages, as a client shows them or as a model is sent them."""
    contents = [item["content"] for item in items]
    return [content if isinstance(content, str) else "".join(part["text"] for part in content) for content in contents]


@pytest.mark.parametrize("form", [lambda name: name, lambda name: {"id": name}], ids=["text", "object"])
async def test_turn_reads_its_conversation_and_adds_to_it(stage: Stage, stream: bool, form: Any) -> None:
    name = await create(stage, "I am Ada.")
    stage.model.play(text("Hello, Ada."), text("Ada."))

    first = check(await stage.ask(input="Hi", conversation=form(name), stream=stream))
    second = check(await stage.ask(input="Who am I?", conversation=form(name), stream=stream))

    assert (first.body["conversation"], second.body["previous_response_id"]) == ({"id": name}, None)
    assert (await stage.get(f"/v1/responses/{first.body['id']}")).json() == first.body
    everything = ["I am Ada.", "Hi", "Hello, Ada.", "Who am I?", "Ada."]
    assert said(stage.model.asked[1]["input"]) == everything[:4]
    assert not {"conversation", "previous_response_id"} & set(stage.model.asked[1])
    items = await items_of(stage, name)
    assert said(items) == everything
    given = (await stage.get(f"/v1/responses/{first.body['id']}/input_items")).json()["data"]
    assert [items[1], items[2]] == [given[0], first.body["output"][0]]


async def test_turn_that_is_not_stored_adds_its_items_all_the_same(stage: Stage, stream: bool) -> None:
    name = await create(stage)
    stage.model.play(text("No trace."), text("Yes."))

    silent = check(await stage.ask(input="Hi", conversation=name, store=False, stream=stream))
    check(await stage.ask(input="Still there?", conversation=name, stream=stream))

    assert (await stage.get(f"/v1/responses/{silent.body['id']}")).status_code == 404
    assert said(await items_of(stage, name)) == ["Hi", "No trace.", "Still there?", "Yes."]


async def test_turn_that_sends_an_item_of_its_conversation_again_is_refused(stage: Stage, stream: bool) -> None:
    name = await create(stage, "One")
    (there,) = await items_of(stage, name)

    for given in ([there], [{"type": "item_reference", "id": there["id"]}]):
        refused = await stage.ask(input=given, conversation=name, stream=stream)

        message = f"Duplicate item found with id '{there['id']}'. Remove duplicate items from your input and try again."
        told = refused.body["error"]
        assert (refused.status, told["param"], told["message"]) == (400, "input", message)
    assert (stage.model.asked, await items_of(stage, name)) == ([], [there])


async def test_turn_that_fails_adds_nothing(stage: Stage, stream: bool) -> None:
    name = await create(stage, "One")
    stage.model.play(stream_error("broken", reply=text("Half")), text("Fine."))

    failed = await stage.ask(input="Two", conversation=name, stream=stream)
    check(await stage.ask(input="Three", conversation=name, stream=stream))

    assert failed.body.get("status", "failed") == "failed"
    assert said(await items_of(stage, name)) == ["One", "Three", "Fine."]


async def test_response_of_a_conversation_is_continued_from_what_it_had_read(stage: Stage, stream: bool) -> None:
    name = await create(stage, "One")
    stage.model.play(text("Two."), text("Five."), text("Six."))
    first = check(await stage.ask(input="1", conversation=name, stream=stream))
    await stage.client.post(f"/v1/conversations/{name}/items", json={"items": [{"role": "user", "content": "Later"}]})
    for item in await items_of(stage, name):
        await stage.client.delete(f"/v1/conversations/{name}/items/{item['id']}")

    branch = check(await stage.ask(input="4", previous_response_id=first.body["id"], stream=stream))
    await stage.client.delete(f"/v1/conversations/{name}")
    check(await stage.ask(input="5", previous_response_id=branch.body["id"], stream=stream))

    assert branch.body["conversation"] is None
    assert said(stage.model.asked[1]["input"]) == ["One", "1", "Two.", "4"]
    assert said(stage.model.asked[2]["input"]) == ["One", "1", "Two.", "4", "Five.", "5"]


async def test_second_turn_waits_for_the_first_and_reads_what_it_added(stage: Stage, stream: bool) -> None:
    name = await create(stage)
    go_on = asyncio.Event()
    stage.model.play(held(go_on, text("First.")), text("Second."))

    async with asyncio.timeout(2 * WAIT_S), asyncio.TaskGroup() as tasks:
        first = tasks.create_task(stage.ask(input="1", conversation=name, stream=stream))
        await stage.model.wait_until_asked(1)
        second = tasks.create_task(stage.ask(input="2", conversation=name, stream=stream))
        await stage.get(f"/v1/conversations/{name}")
        assert len(stage.model.asked) == 1
        go_on.set()

    assert (check(first.result()).text, check(second.result()).text) == ("First.", "Second.")
    assert said(stage.model.asked[1]["input"]) == ["1", "First.", "2"]
    assert said(await items_of(stage, name)) == ["1", "First.", "2", "Second."]


async def test_second_turn_that_may_not_wait_is_refused_before_the_model_is_asked(
    impatient: Stage, stream: bool
) -> None:
    name = await create(impatient)
    go_on = asyncio.Event()
    impatient.model.play(held(go_on, text("First.")), text("Third."))

    async with asyncio.timeout(2 * WAIT_S), asyncio.TaskGroup() as tasks:
        first = tasks.create_task(impatient.ask(input="1", conversation=name, stream=stream))
        await impatient.model.wait_until_asked(1)
        second = await impatient.ask(input="2", conversation=name, stream=stream)
        go_on.set()
    third = check(await impatient.ask(input="3", conversation=name, stream=stream))

    message = "Another process is currently operating on this conversation. Please retry in a few seconds."
    assert (second.status, second.body["error"]) == (
        400,
        {"message": message, "type": "invalid_request_error", "param": "conversation", "code": "conversation_locked"},
    )
    assert (check(first.result()).text, third.text, len(impatient.model.asked)) == ("First.", "Third.", 2)


async def test_turn_whose_conversation_lost_an_item_that_it_had_read_fails_and_leaves_nothing(
    stage: Stage, stream: bool
) -> None:
    name = await create(stage, "One", "Two")
    items = await items_of(stage, name)
    before = stage.stored_turns()
    go_on = asyncio.Event()
    stage.model.play(held(go_on, text("Late.")))

    async with asyncio.timeout(2 * WAIT_S), asyncio.TaskGroup() as tasks:
        running = tasks.create_task(stage.ask(input="3", conversation=name, stream=stream))
        await stage.model.wait_until_asked(1)
        await stage.client.delete(f"/v1/conversations/{name}/items/{items[0]['id']}")
        go_on.set()

    failed = running.result()
    told = failed.body["error"]
    assert (failed.status, told["code"]) == (200 if stream else 409, "conversation_changed")
    assert told["message"].startswith(f"Conversation with id '{name}' changed while the response was created")
    assert (await items_of(stage, name), stage.stored_turns()) == (items[1:], before)


async def test_conversation_whose_client_went_away_is_free_at_once(impatient: Stage, stream: bool) -> None:
    name = await create(impatient)
    impatient.model.play(held(asyncio.Event(), text("Never.")), text("Here."))
    async with asyncio.timeout(WAIT_S), asyncio.TaskGroup() as tasks:
        gone = tasks.create_task(impatient.ask(input="1", conversation=name, stream=stream))
        await impatient.model.wait_until_asked(1)
        gone.cancel()
    await impatient.wait_until_idle()

    answer = check(await impatient.ask(input="2", conversation=name, stream=stream))

    assert (answer.text, said(await items_of(impatient, name))) == ("Here.", ["2", "Here."])


async def test_sdk_talks_in_a_conversation(stage: Stage) -> None:
    stage.model.play(text("One."), text("Two."))
    async with open_sdk(stage) as sdk:
        conversation = await sdk.conversations.create()
        for given in ("1", "2"):
            async with sdk.responses.stream(model="attache-demo", input=given, conversation=conversation.id) as stream:
                final = await stream.get_final_response()
            assert final.conversation is not None
            assert final.conversation.id == conversation.id
        items = [item async for item in sdk.conversations.items.list(conversation.id, order="asc")]
        assert [item.type for item in items] == ["message"] * 4
    assert said(await items_of(stage, conversation.id)) == ["1", "One.", "2", "Two."]


def echo(request: ReceivedRequest) -> Reply:
    """An answer that names the question."""
    given = request.body["input"]
    return text(f"to {given if isinstance(given, str) else said(given)[-1]}")


async def test_turns_of_many_clients_are_each_there_once_whole_and_in_order(
    placement: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    async with open_stage(placement, tmp_path_factory.mktemp(placement), workers=2) as stage:
        stage.model.set(echo)
        names = [await create(stage), await create(stage)]

        async def talk(client: int) -> list[str]:
            told = []
            for turn in range(3):
                question = f"{client}.{turn}"
                answer = await stage.ask(input=question, conversation=names[client % 2], stream=turn % 2 == 1)
                assert check(answer).text == f"to {question}"
                told.append(question)
            return told

        async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(talk(client)) for client in range(8)]

        for place, name in enumerate(names):
            spoken = said(await items_of(stage, name))
            questions, answers = spoken[::2], spoken[1::2]
            assert answers == [f"to {question}" for question in questions]
            for client in range(place, 8, 2):
                assert [each for each in questions if each.startswith(f"{client}.")] == running[client].result()
            assert len(questions) == 12
        histories = [len(asked["input"]) for asked in stage.model.asked if isinstance(asked["input"], list)]
        assert sorted(histories) == sorted([2 * turn + 1 for turn in range(1, 12)] * 2)
