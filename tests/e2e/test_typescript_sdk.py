"""The official TypeScript SDK, in small programs that Node runs: each tells what it saw as JSON."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from attache_core.json_codec import Json, decode
from attache_core.testing.model_script import call, function_calls, http_error, stream_error, text
from e2e.node_packages import install_packages
from e2e.stage import WAIT_S, Stage

PROGRAMS = Path(__file__).parents[1] / "typescript"
INSTALL_S = 120.0
RUN_S = 4 * WAIT_S
SLOW_DOWN: Json = {"error": {"message": "Slow down.", "type": "requests", "param": None, "code": "rate_limit_exceeded"}}


@pytest.fixture(scope="session")
def programs() -> Path:
    """The folder of the programs, with the SDK beside them."""
    install_packages(PROGRAMS, INSTALL_S)
    return PROGRAMS


async def run(stage: Stage, program: Path) -> Any:
    """What the program told; it has 20 s."""
    node = shutil.which("node")
    assert node is not None
    process = await asyncio.create_subprocess_exec(
        node,
        program.name,
        cwd=program.parent,
        env={**os.environ, "GATEWAY_URL": stage.gateway.url},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(RUN_S):
            told, complained = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, complained.decode()
    return decode(told)


async def test_stream_accumulates_is_retrieved_and_continued(stage: Stage, programs: Path) -> None:
    stage.model.play(text("Hello, Ada."), text("Ada."))

    assert await run(stage, programs / "streams.mjs") == {
        "types": [
            "response.created",
            "response.in_progress",
            "response.output_item.added",
            "response.content_part.added",
            "response.output_text.delta",
            "response.output_text.delta",
            "response.output_text.done",
            "response.content_part.done",
            "response.output_item.done",
            "response.completed",
        ],
        "text": "Hello, Ada.",
        "final": "Hello, Ada.",
        "retrieved": "Hello, Ada.",
        "second": "Ada.",
        "previous": True,
        "requestId": "string",
    }


async def test_structured_output_is_parsed(stage: Stage, programs: Path) -> None:
    snow = {"city": "Oslo", "sky": "snow"}
    stage.model.play(text('{"city": "Oslo", "sky": "snow"}'), text('{"city": "Oslo", "sky": "snow"}', deltas=5))

    assert await run(stage, programs / "structured.mjs") == {"plain": snow, "streamed": snow}


async def test_streamed_calls_are_answered_with_the_output_sent_back(stage: Stage, programs: Path) -> None:
    stage.model.play(
        function_calls(call("get_forecast", {"city": "Oslo"}), call("get_forecast", {"city": "Rome"})), text("Snow.")
    )

    assert await run(stage, programs / "tools.mjs") == {
        "streamed": [{"city": "Oslo"}, {"city": "Rome"}],
        "calls": [["get_forecast", {"city": "Oslo"}], ["get_forecast", {"city": "Rome"}]],
        "answer": "Snow.",
    }
    told = stage.model.asked[1]["input"]
    assert [item["output"] for item in told[3:]] == ["Snow in Oslo.", "Snow in Rome."]


async def test_errors_are_the_sdks_own_and_retried(stage: Stage, programs: Path) -> None:
    stage.model.play(
        http_error(429, SLOW_DOWN),
        http_error(429, SLOW_DOWN, {"retry-after": "0.05"}),
        text("Now."),
        stream_error("It broke.", reply=text("Half an")),
    )

    assert await run(stage, programs / "errors.mjs") == {
        "refused": {"kind": "BadRequestError", "status": 400, "code": "invalid_type", "param": "temperature"},
        "unknown": {"kind": "NotFoundError", "status": 404, "code": None, "param": None},
        "limited": {"kind": "RateLimitError", "status": 429, "code": "rate_limit_exceeded", "param": None},
        "retried": "Now.",
        "failed": "response.failed",
    }
