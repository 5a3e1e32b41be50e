"""A model server that stops in the middle of what nobody should wait for."""

from __future__ import annotations

import asyncio
from pathlib import Path

from attache_core.testing.model_script import raw, stalls_after
from e2e.stage import WAIT_S, open_stage

IMPATIENT = """
chains:
  responses:
    - filter: validate
    - filter: persist
    - filter: rehydrate
    - filter: tool_dispatch
      loop:
        - filter: upstream_round
          error_body_timeout_s: 0.2
"""


async def test_error_whose_body_stalls_is_answered_all_the_same(placement: str, tmp_path: Path) -> None:
    stalling = stalls_after(1, raw(500, {"content-type": "application/json"}, [b'{"error": ', b'"never said"}']))
    async with open_stage(placement, tmp_path, gateway_yaml=IMPATIENT) as stage, asyncio.timeout(2 * WAIT_S):
        stage.model.play(stalling, stalling)
        answers = [await stage.ask(input="Hi", stream=stream) for stream in (False, True)]

    assert [(answer.status, answer.body["error"]["type"]) for answer in answers] == [(502, "server_error")] * 2
