"""Every kind of inference server behind the real gateway: the client sees the same, whichever it is.

What the model says is one script, written on the wire as each server writes it. `auto` recognises all of them, and the
dialect by name does the same: of that, only what the dialects read differently is asked for here.
"""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator
from typing import Any, get_args

import pytest
import pytest_asyncio

from attache_core.json_codec import Json, decode
from attache_core.testing.model_script import (
    Dialect,
    Reply,
    call,
    dies_after,
    function_calls,
    http_error,
    in_dialect,
    incomplete,
    reasoning_then,
    stream_error,
    text,
)
from core.events.canonical_stream import check_stream
from e2e.stage import Answered, Stage, answered, open_stage

SERVERS: tuple[Dialect, ...] = get_args(Dialect)
NAMED = {"vllm_harmony": "vllm", "vllm_direct": "vllm", "sglang_harmony": "sglang"}
EVERY_SERVER = pytest.mark.parametrize("server", SERVERS)
TOOLS = [{"type": "function", "name": name, "parameters": {"type": "object", "properties": {}}} for name in ("f", "g")]

SAID: dict[str, tuple[Reply, str, list[Any]]] = {
    "text": (text("Hello there."), "completed", [("message", "Hello there.")]),
    "reasoning": (
        reasoning_then("Let me see.", "Well, hello."),
        "completed",
        [("reasoning", "Let me see."), ("message", "Well, hello.")],
    ),
    "call": (function_calls(call("f", {"a": [1]}, call_id="c1")), "completed", [("f", "c1", {"a": [1]})]),
    "calls": (
        function_calls(
            call("f", {"a": 1}, call_id="c1"), call("g", {}, call_id="c2"), call("f", {"b": 2}, call_id="c3")
        ),
        "completed",
        [("f", "c1", {"a": 1}), ("g", "c2", {}), ("f", "c3", {"b": 2})],
    ),
    "incomplete": (incomplete(reply=text("Half of")), "incomplete", [("message", "Half of")]),
}
WITHOUT_INCOMPLETE = ("llama_cpp",)
"""It has no way to say so."""


@pytest.fixture(params=SAID)
def said(request: pytest.FixtureRequest, server: Dialect) -> tuple[Reply, str, list[Any]]:
    return SAID["text" if request.param == "incomplete" and server in WITHOUT_INCOMPLETE else request.param]


def content_of(item: Json) -> Any:
    """What an item says, whoever said it: OpenAI's reasoning is a summary, and vLLM's white space is its own."""
    if item["type"] == "function_call":
        return (item["name"], item["call_id"], decode(item["arguments"]))
    parts = item["summary"] if item["type"] == "reasoning" and item["summary"] else item["content"]
    return (item["type"], "".join(part["text"] for part in parts))


def check(answer: Answered, status: str, items: list[Any], stream: bool) -> None:
    assert answer.status == 200
    assert (answer.body["status"], [content_of(item) for item in answer.body["output"]]) == (status, items)
    assert answer.body["usage"]["total_tokens"] > 0
    assert answer.body["incomplete_details"] == ({"reason": "max_output_tokens"} if status == "incomplete" else None)
    if stream:
        check_stream(answer.decoded)
        assert answer.types[-1] == f"response.{status}"


@EVERY_SERVER
async def test_recognised_server_gives_the_same_response(
    stage: Stage, stream: bool, server: Dialect, said: tuple[Reply, str, list[Any]]
) -> None:
    reply, status, items = said
    stage.model.play(in_dialect(server, reply))

    check(await stage.ask(input="Go", tools=TOOLS, stream=stream), status, items, stream)


async def test_streams_of_all_servers_have_the_same_events(stage: Stage) -> None:
    for name, (reply, _, _) in SAID.items():
        servers = [
            server for server in SERVERS if (name, server) not in (("incomplete", "llama_cpp"), ("reasoning", "openai"))
        ]
        sequences = {}
        for server in servers:
            stage.model.play(in_dialect(server, reply))
            answer = await stage.ask(input="Go", tools=TOOLS, stream=True)
            sequences[server] = [kind for kind, _ in itertools.groupby(answer.types)]
        assert sequences == dict.fromkeys(servers, sequences["vllm"]), name


@EVERY_SERVER
async def test_refusal_before_the_answer_keeps_its_status_and_words(
    stage: Stage, stream: bool, server: Dialect
) -> None:
    stage.model.play(in_dialect(server, http_error(429, None, {"retry-after": "3"}, message="Slow down.")))

    answer = await stage.ask(input="Go", stream=stream)

    assert (answer.status, answer.headers["retry-after"]) == (429, "3")
    error = {"message": "Slow down.", "type": "invalid_request_error", "param": None, "code": None}
    assert answer.body == {"error": error}


@pytest.mark.parametrize(
    ("server", "form"), [*((server, "both") for server in SERVERS), ("vllm", "error"), ("vllm", "failed")]
)
async def test_failure_after_the_answer_began_fails_the_response(
    stage: Stage, stream: bool, server: Dialect, form: Any
) -> None:
    before = stage.stored_turns()
    stage.model.play(in_dialect(server, stream_error("Out of memory.", form=form, reply=text("Hello there."))))

    answer = await stage.ask(input="Go", stream=stream)

    if not stream:
        assert (answer.status, answer.body["error"]["type"]) == (502, "server_error")
        assert stage.stored_turns() == before
        return
    check_stream(answer.decoded)
    assert (answer.types[-1], answer.body["error"]["message"]) == ("response.failed", "Out of memory.")
    assert [content_of(item) for item in answer.body["output"]] == [("message", "Hello there.")]


@EVERY_SERVER
@pytest.mark.parametrize("after", [2, -1])
async def test_server_that_dies_is_a_failure(stage: Stage, stream: bool, server: Dialect, after: int) -> None:
    stage.model.play(in_dialect(server, dies_after(after, text("one two three four five six"))))

    answer = await stage.ask(input="Go", stream=stream)

    if not answer.events:
        # A reset may overtake what was sent before it; then nothing was released.
        assert (answer.status // 100, answer.body["error"]["type"]) == (5, "server_error")
        return
    assert stream
    check_stream(answer.decoded)
    assert (answer.types[-1], answer.body["status"]) == ("response.failed", "failed")


CHAIN = """
  as_{name}:
    - filter: validate
    - filter: persist
    - filter: rehydrate
    - filter: tool_dispatch
      loop:
        - filter: upstream_round
          dialect: {name}
"""
DIALECTS = sorted({NAMED.get(server, server) for server in SERVERS})
CHAINS = "\nchains:" + "".join(CHAIN.format(name=name) for name in DIALECTS)
ROUTES = "\nroutes:\n" + "\n".join(
    f"  - {{match: {{path: /as/{name}/v1/responses, methods: [POST]}}, chain: as_{name}}}" for name in DIALECTS
)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def named_stage(placement: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    async with open_stage(placement, tmp_path_factory.mktemp("named"), gateway_yaml=CHAINS + ROUTES) as stage:
        yield stage


@EVERY_SERVER
@pytest.mark.parametrize("said", ["reasoning", "calls"], indirect=True)
async def test_server_by_the_name_of_its_dialect_gives_the_same_response(
    named_stage: Stage, stream: bool, server: Dialect, said: tuple[Reply, str, list[Any]]
) -> None:
    reply, status, items = said
    named_stage.model.play(in_dialect(server, reply))
    body = {"model": "attache-demo", "input": "Go", "tools": TOOLS, "stream": stream}

    answer = answered(await named_stage.client.post(f"/as/{NAMED.get(server, server)}/v1/responses", json=body))

    check(answer, status, items, stream)


MARKUP = '<think>Hm.</think><tool_call>{"name": "echo", "arguments": {"text": "hi"}}</tool_call>'


@EVERY_SERVER
async def test_markup_of_a_call_in_a_text_is_shown_and_never_run(stage: Stage, stream: bool, server: Dialect) -> None:
    calls = len(stage.mcp.calls)
    stage.model.play(in_dialect(server, text(MARKUP)))

    answer = await stage.ask(input="Go", tools=[stage.mcp_tool()], stream=stream)

    assert answer.text == MARKUP
    assert (answer.item_types, len(stage.mcp.calls)) == (["mcp_list_tools", "message"], calls)
