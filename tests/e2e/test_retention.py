"""Responses that are kept for a time only, and those that are kept not at all."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from attache_core.json_codec import Json
from attache_core.testing.model_script import call, function_calls, text
from e2e.stage import WAIT_S, Stage, check, open_stage

SECOND_IN_DAYS = 1 / 86_400
TABLES = ("responses", "items", "approvals", "conversation_turns")
CANARY = "canary-5f1c"


def rows(stage: Stage) -> dict[str, int]:
    """How many rows each table has."""
    with closing(sqlite3.connect(stage.storage)) as database:
        return {table: database.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in TABLES}


async def test_response_is_unknown_when_its_time_is_over_and_nothing_of_it_is_left(
    placement: str, stream: bool, tmp_path: Path
) -> None:
    keep = f"retention_days: {SECOND_IN_DAYS}, retention_interval_s: 0.1"
    store = f'{{url: "sqlite:///{tmp_path}/attache.db", {keep}}}'
    async with open_stage(placement, tmp_path, storage_url=store, workers=2) as stage:
        stage.model.play(function_calls(call("echo", {"text": "a"})), text("Yes."))
        tools = [stage.mcp_tool(require_approval="always")]
        conversation = (await stage.client.post("/v1/conversations", json={})).json()["id"]
        asked = check(await stage.ask(input="Echo", tools=tools, stream=stream))
        said = check(await stage.ask(input="Hi", conversation=conversation, stream=stream))

        async with asyncio.timeout(2 * WAIT_S):
            while any(rows(stage).values()):  # noqa: ASYNC110 - the database is only ever asked
                await asyncio.sleep(0.05)

        for response in (asked.body, said.body):
            assert (await stage.get(f"/v1/responses/{response['id']}")).status_code == 404
            assert (await stage.get(f"/v1/responses/{response['id']}/input_items")).status_code == 404
            refused = await stage.ask(input="?", previous_response_id=response["id"], stream=stream)
            assert (refused.status, refused.body["error"]["code"]) == (400, "previous_response_not_found")
        items = (await stage.get(f"/v1/conversations/{conversation}/items?order=asc")).json()["data"]
        assert [item["role"] for item in items] == ["user", "assistant"]


def stored_bytes(stage: Stage) -> bytes:
    """All that is on the disk: the database, and what was written to it last."""
    files = (stage.storage, *stage.storage.parent.glob(f"{stage.storage.name}-*"))
    return b"".join(file.read_bytes() for file in files)


async def test_turns_that_are_not_stored_leave_no_trace_in_the_database(
    placement: str, stream: bool, tmp_path: Path
) -> None:
    async with open_stage(placement, tmp_path) as stage:
        stage.model.play(text("Stored."))
        stored = check(await stage.ask(input="kept-words", stream=stream)).body["id"]
        stage.model.play(function_calls(call("echo", {"text": CANARY})), text(CANARY), text(CANARY))
        words: Json = {"instructions": CANARY, "metadata": {CANARY: CANARY}, "store": False}
        given: Any = [{"id": f"msg_{CANARY}", "type": "message", "role": "user", "content": CANARY}]

        one = await stage.ask(input=given, tools=[stage.mcp_tool()], stream=stream, **words)
        two = await stage.ask(input=CANARY, previous_response_id=stored, stream=stream, **words)
        failed = await stage.ask(input=CANARY, stream=stream, **words)

        assert [check(answer).text for answer in (one, two)] == [CANARY] * 2
        assert failed.status >= 500
        for answer in (one, two):
            assert (await stage.get(f"/v1/responses/{answer.body['id']}")).status_code == 404
        await stage.wait_until_idle()
        on_disk = stored_bytes(stage)
        assert [each in on_disk for each in (b"kept-words", CANARY.encode())] == [True, False]


async def test_deleted_response_leaves_no_row_behind(placement: str, stream: bool, tmp_path: Path) -> None:
    async with open_stage(placement, tmp_path) as stage:
        stage.model.play(function_calls(call("echo", {"text": "a"})), text("Yes."))
        tools = [stage.mcp_tool(require_approval="always")]
        conversation = (await stage.client.post("/v1/conversations", json={})).json()["id"]
        made = [
            check(await stage.ask(input="Echo", tools=tools, stream=stream)).body["id"],
            check(await stage.ask(input="Hi", conversation=conversation, stream=stream)).body["id"],
        ]
        assert all(rows(stage).values())

        for response_id in made:
            assert (await stage.client.delete(f"/v1/responses/{response_id}")).status_code == 200

        assert rows(stage) == dict.fromkeys(TABLES, 0)
