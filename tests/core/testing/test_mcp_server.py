from __future__ import annotations

import asyncio
import signal
import sys

from mcp import Client


async def test_module_prints_its_url_serves_and_ends_with_0_on_sigterm() -> None:
    command = [sys.executable, "-m", "attache_core.testing.mcp_server", "--port", "0"]
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        async with asyncio.timeout(30):  # starting Python and importing the SDK is the slow part
            url = (await process.stdout.readline()).decode().strip().removeprefix("listening ")
        async with asyncio.timeout(5):
            async with Client(url) as client:
                first = await client.call_tool("get_weather", {"city": "Rome"})
                second = await client.call_tool("get_weather", {"city": "Rome"})
            process.send_signal(signal.SIGTERM)
            status = await process.wait()
            errors = await process.stderr.read()
    finally:
        if process.returncode is None:
            process.kill()
    assert (first, status, errors) == (second, 0, b"")
    assert first.structured_content == {"city": "Rome", "celsius": 18, "sky": "clear"}
