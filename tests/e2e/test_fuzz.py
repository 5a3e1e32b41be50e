"""Through the real gateway: damaged requests and damaged answers end as the API ends them, and leave nothing behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from attache_core.json_codec import Json, decode, encode
from attache_core.testing.model_script import raw, text
from core.events.canonical_stream import check_stream
from e2e.stage import WAIT_S, answered, open_stage
from fuzz.create_requests import WHOLE
from fuzz.damage import damaged
from fuzz.outcome import BUG, check_error_body
from fuzz.test_upstream_answers import BODIES, disordered

CASES = 20
"""Of each kind, and each of them once as JSON and once as a stream."""

SSE = {"content-type": "text/event-stream"}
JSON = {"content-type": "application/json"}
HELLO: Json = {"model": "m", "input": "Hi"}


def drawn(strategy: st.SearchStrategy[Any]) -> list[Any]:
    """The same examples in every run."""
    examples: list[Any] = []

    @settings(max_examples=CASES, derandomize=True, database=None, deadline=None, phases=[Phase.generate])
    @given(strategy)
    def take(example: Any) -> None:
        examples.append(example)

    take()
    return examples


@st.composite
def damaged_bytes(draw: st.DrawFn) -> bytes:
    body = bytearray(encode(draw(damaged([WHOLE]))))
    at: int = draw(st.integers(0, len(body)))
    body[at : at + draw(st.integers(0, 3))] = draw(st.binary(max_size=2))
    return bytes(body)


async def check_exchange(client: httpx.AsyncClient, body: bytes) -> None:
    """One request: a valid answer or an error of the API, in time, and no bug of ours."""
    response = await client.post("/v1/responses", headers=JSON, content=body)
    if response.status_code != 200:
        check_error_body(response.json())
        assert response.json()["error"]["code"] != BUG, body
        return
    answer = answered(response)
    if answer.events:
        check_stream(answer.decoded, joins="anyhow", openai_types=False)
    assert (answer.body["error"] or {}).get("code") != BUG, body
    stored = await client.get(f"/v1/responses/{answer.body['id']}")
    assert stored.status_code == 404 if answer.body["store"] is False else stored.json() == answer.body


async def test_any_request_and_any_answer_leave_a_gateway_that_lives_and_logs_no_traceback(
    placement: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    async with (
        open_stage(placement, tmp_path) as stage,
        httpx.AsyncClient(base_url=stage.gateway.url, timeout=2 * WAIT_S) as client,
    ):
        workers = stage.gateway.workers.pids
        stage.model.set(lambda _: text("Hello."))
        for request in drawn(damaged([WHOLE])):
            for stream in (False, True):
                await check_exchange(client, encode({**request, "stream": stream}))
        for body in drawn(damaged_bytes()):
            await check_exchange(client, body)

        events = [[b"data: " + encode(payload) + b"\n\n" for payload in payloads] for payloads in drawn(disordered())]
        replies = [raw(200, SSE, chunks) for chunks in events]
        replies += [raw(200, JSON, [encode(body)]) for body in drawn(damaged(BODIES))]
        for reply in replies:
            for stream in (False, True):
                stage.model.play(reply)
                await check_exchange(client, encode({**HELLO, "stream": stream}))

        stage.model.play(text("Still here."))
        assert (await stage.ask(input="Hi")).text == "Still here."
        assert stage.gateway.workers.pids == workers
        await stage.wait_until_idle()

    log = [decode(line) for line in capfd.readouterr().err.splitlines() if line.startswith("{")]
    assert log
    assert [line for line in log if line["level"] in ("error", "critical") or "exception" in line] == []
