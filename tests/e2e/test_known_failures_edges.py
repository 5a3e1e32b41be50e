"""Failures of other gateways that operators and clients reported: secrets, limits, codings, clients of one kind."""

from __future__ import annotations

import gzip
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import brotli  # type: ignore[import-untyped]  # it ships no types
import pytest
import zstandard

from attache_core.json_codec import Json
from attache_core.testing.model_script import call, function_calls, http_error, says, text, thinks
from e2e.stage import Stage, check, open_stage

MIB = 1024 * 1024
CANARY = "canary-5f1d3b"
REMEMBERED = "remember-71ac02"
OVER_LIMIT_MIB = 12
BOMB_MIB = 64


async def test_secrets_of_a_request_are_neither_in_the_database_nor_in_the_log_nor_told_upstream(
    placement: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    async with open_stage(placement, tmp_path) as stage:
        tool = stage.mcp_tool(authorization=f"{CANARY}-1", headers={"x-api-key": f"{CANARY}-2"})
        gone = stage.mcp_tool("gone", server_url="http://127.0.0.1:1/mcp", headers={"cookie": f"{CANARY}-4"})
        headers = {"x-secret": f"{CANARY}-5", "cookie": f"session={CANARY}-6"}
        for stream in (False, True):
            stage.model.play(function_calls(call("fail", {"message": "no"})), text("It failed."), http_error(500))
            body = {"model": "m", "input": REMEMBERED, "tools": [tool, gone], "stream": stream}
            shown = check(await stage.post(body, headers))
            failed = await stage.post(body, headers)
            assert CANARY not in str([shown.body, shown.events, failed.body, stage.model.asked])
            assert failed.status == (200 if stream else 502), "a stream began before the tool servers were asked"
        stored = b"".join(stage.storage.with_name(name).read_bytes() for name in ("attache.db", "attache.db-wal"))

    log = capfd.readouterr().err
    assert REMEMBERED.encode() in stored
    assert CANARY.encode() not in stored
    assert log
    assert CANARY not in log


async def test_body_over_the_limit_is_413_however_it_is_cut(stage: Stage) -> None:
    async def pieces(size: int) -> AsyncIterator[bytes]:
        yield b'{"model": "m", "input": "'
        for _ in range(0, OVER_LIMIT_MIB * MIB, size):
            yield b"x" * size
        yield b'"}'

    for size in (MIB, 16 * 1024):
        answer = await stage.client.post(
            "/v1/responses", headers={"content-type": "application/json"}, content=pieces(size)
        )
        assert (answer.status_code, answer.json()["error"]["type"]) == (413, "invalid_request_error")
        assert answer.headers["content-type"] == "application/json"
    assert stage.model.asked == []


CODINGS = {"gzip": gzip.compress, "zstd": zstandard.compress, "br": brotli.compress}


@pytest.mark.parametrize("coding", CODINGS)
async def test_compressed_request_that_becomes_enormous_is_413_in_little_memory(stage: Stage, coding: str) -> None:
    bomb = CODINGS[coding](b'{"model": "m", "input": "' + b"x" * (BOMB_MIB * MIB) + b'"}')
    assert len(bomb) < MIB

    answer = await stage.post(bomb, {"content-encoding": coding})

    assert (answer.status, answer.body["error"]["code"]) == (413, "request_too_large")
    assert stage.model.asked == []


async def test_output_of_a_call_may_be_a_list_of_parts(stage: Stage, stream: bool) -> None:
    stage.model.play(text("Seen."))
    output = [{"type": "input_text", "text": "one"}, {"type": "input_text", "text": "two"}]
    items = [
        {"role": "user", "content": "Look"},
        {"type": "function_call", "call_id": "call_1", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "call_1", "output": output},
    ]

    check(await stage.ask(input=items, stream=stream))

    assert stage.model.asked[0]["input"][2]["output"] == output


def without_ids(items: list[Json]) -> list[Json]:
    return [{name: value for name, value in item.items() if name != "id"} for item in items]


@pytest.mark.parametrize("keep_ids", [True, False], ids=["with ids", "without ids"])
async def test_replayed_reasoning_stays_beside_what_follows_it(stage: Stage, stream: bool, keep_ids: bool) -> None:
    stage.model.play(says(thinks("They want the forecast."), call("f", {})), text("Snow."))
    tools: list[Any] = [{"type": "function", "name": "f"}]
    first = check(await stage.ask(input="Weather?", tools=tools, store=False, stream=stream))
    output = first.body["output"] if keep_ids else without_ids(first.body["output"])
    result = {"type": "function_call_output", "call_id": output[1]["call_id"], "output": "snow"}

    items = [{"role": "user", "content": "Weather?"}, *output, result]
    check(await stage.ask(input=items, tools=tools, store=False, stream=stream))

    sent = stage.model.asked[1]["input"]
    assert [item.get("type", "message") for item in sent] == [
        "message",
        "reasoning",
        "function_call",
        "function_call_output",
    ]
