"""The stream of a whole turn: signs of life, padding, failures, the bound on what is kept, and usage."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attache_core.errors import AttacheError, UpstreamError
from attache_core.events.event import Event, terminal_event
from attache_core.json_codec import Json, encode
from attache_core.testing.mcp_server import RunningMcpServer, running_mcp_server
from attache_core.tools.builtin import builtin_tool_types
from attache_core.tools.mcp.servers import McpServers, open_mcp_servers
from attache_core.tools.mcp.settings import McpSettings
from attache_core.turn.below import Below
from attache_core.turn.loop import LoopLimits, run_tool_loop
from attache_core.turn.model_request import model_request
from attache_core.turn.round import run_round
from attache_core.types.turn import TurnRequest
from core.events.canonical_stream import check_stream

WAIT_S = 5.0
HASTY = LoopLimits(progress_interval_s=0.005)
PATIENT = LoopLimits(progress_interval_s=3600.0)
SIGN = "response.in_progress"


@pytest.fixture
async def mcp() -> AsyncIterator[McpServers]:
    async with open_mcp_servers(McpSettings(allow_private_addresses=True)) as servers:
        yield servers


@pytest.fixture
async def server() -> AsyncIterator[RunningMcpServer]:
    async with running_mcp_server() as running:
        yield running


def turn(*, stream: bool = True, **body: Any) -> TurnRequest:
    return TurnRequest({"model": "m", "input": "Hi", "stream": stream, **body})


def demo_tool(url: str) -> Json:
    return {"type": "mcp", "server_label": "demo", "server_url": url, "require_approval": "never"}


def message_events(deltas: Sequence[str], usage: Json | None = None) -> list[Json]:
    """A streamed answer of one message, as an inference server sends it."""
    text = "".join(deltas)
    item = {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": text, "annotations": [], "logprobs": []}],
    }
    place = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    response = {"id": "resp_x", "status": "in_progress", "output": []}
    return [
        {"type": "response.created", "response": response},
        {"type": "response.output_item.added", "output_index": 0, "item": {**item, "content": []}},
        {"type": "response.content_part.added", **place, "part": {"type": "output_text", "text": ""}},
        *({"type": "response.output_text.delta", **place, "delta": delta} for delta in deltas),
        {"type": "response.output_text.done", **place, "text": text},
        {"type": "response.content_part.done", **place, "part": item["content"][0]},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {
            "type": "response.completed",
            "response": {**response, "status": "completed", "output": [item], "usage": usage},
        },
    ]


def call_events(name: str, arguments: str = "{}", usage: Json | None = None) -> list[Json]:
    item = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": name, "arguments": arguments}
    response = {"id": "resp_x", "status": "completed", "output": [item], "usage": usage}
    return [{"type": "response.completed", "response": response}]


class Model:
    """Answers each round with the next of its streams; `pause` is awaited before each event of one."""

    def __init__(self, *answers: list[Json], pause: Callable[[Json], Awaitable[None]] | None = None) -> None:
        self.asked: list[Json] = []
        self.closed = 0
        self._answers = list(answers)
        self._pause = pause

    def __call__(self, asked: TurnRequest) -> AsyncGenerator[Event, None]:
        self.asked.append(asked.body)
        return run_round(asked, self._send)

    async def _send(self, asked: TurnRequest) -> Any:
        return Streamed(self._frames(self._answers.pop(0)))

    async def _frames(self, payloads: list[Json]) -> AsyncGenerator[bytes, None]:
        try:
            for payload in payloads:
                if self._pause is not None:
                    await self._pause(payload)
                yield b"data: %b\n\n" % encode(payload)
        finally:
            self.closed += 1


class Streamed:
    status = 200

    def __init__(self, body: AsyncIterator[bytes]) -> None:
        self.headers = {"content-type": "text/event-stream"}
        self.body = body


class Watched:
    """A turn under way, and how many signs of life its client has had."""

    def __init__(self, given: TurnRequest, below: Below, mcp: McpServers, limits: LoopLimits) -> None:
        self.events: list[Event] = []
        self._running = run_tool_loop(given, below, builtin_tool_types(mcp), limits)
        self._news = asyncio.Event()

    async def run(self) -> list[Event]:
        async with aclosing(self._running), asyncio.timeout(WAIT_S):
            async for event in self._running:
                self.events.append(event)
                self._news.set()
        check_stream(self.events)
        return self.events

    async def until(self, count: int, kind: str = SIGN) -> None:
        """Wait until the client has had so many events of a type."""
        async with asyncio.timeout(WAIT_S):
            while [event.type for event in self.events].count(kind) < count:
                self._news.clear()
                await self._news.wait()


# Signs of life


async def test_model_that_is_silent_before_its_first_event_does_not_silence_the_stream(mcp: McpServers) -> None:
    async def pause(payload: Json) -> None:
        if payload["type"] == "response.created":
            await watched.until(3)

    watched = Watched(turn(), Model(message_events(["Hi"]), pause=pause), mcp, HASTY)
    events = await watched.run()

    types = [event.type for event in events]
    assert types[:4] == ["response.created", SIGN, SIGN, SIGN]
    assert types[-1] == "response.completed"
    assert [event.data["response"] for event in events[1:4]] == [events[0].data["response"]] * 3


async def test_model_that_is_silent_between_its_events_does_not_silence_the_stream(mcp: McpServers) -> None:
    async def pause(payload: Json) -> None:
        if payload.get("delta") == "there":
            await watched.until(3)

    watched = Watched(turn(), Model(message_events(["Hi ", "there", "!"]), pause=pause), mcp, HASTY)
    events = await watched.run()

    types = [event.type for event in events]
    first = types.index("response.output_text.delta")
    assert types[first : first + 3] == ["response.output_text.delta", SIGN, SIGN]
    assert events[-1].data["response"]["output"][0]["content"][0]["text"] == "Hi there!"


async def test_tool_that_takes_long_does_not_silence_the_stream(mcp: McpServers, server: RunningMcpServer) -> None:
    model = Model(call_events("slow", '{"text": "late"}'), message_events(["Done."]))
    watched = Watched(turn(tools=[demo_tool(server.url)]), model, mcp, HASTY)
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(watched.run())
        await watched.until(1, "response.mcp_call_arguments.done")
        await watched.until([event.type for event in watched.events].count(SIGN) + 2)
        server.release.set()
    events = running.result()

    begun = [event.type for event in events].index("response.mcp_call_arguments.done")
    ended = [event.type for event in events].index("response.mcp_call.completed")
    between = events[begun + 1 : ended]
    assert {event.type for event in between} == {SIGN}
    assert [event.data["response"] for event in between] == [events[0].data["response"]] * len(between)
    assert events[-1].data["response"]["output"][1]["output"] == "late"


async def test_model_that_says_what_the_client_does_not_see_does_not_silence_the_stream(
    mcp: McpServers, server: RunningMcpServer
) -> None:
    item = {"type": "function_call", "id": "fc_1", "call_id": "c", "name": "echo", "arguments": ""}
    delta = {"type": "response.function_call_arguments.delta", "output_index": 0, "item_id": "fc_1"}
    added = {"type": "response.output_item.added", "output_index": 0, "item": item}

    async def call_of_many_deltas() -> AsyncGenerator[bytes, None]:
        yield b"data: %b\n\n" % encode(added)
        while [event.type for event in watched.events].count(SIGN) < 4:
            yield b"data: %b\n\n" % encode({**delta, "delta": " "})
            await asyncio.sleep(0.001)
        yield b"data: %b\n\n" % encode({**delta, "delta": '{"text": "a"}'})
        yield b"data: %b\n\n" % encode(call_events("echo")[0])

    async def send(asked: TurnRequest) -> Any:
        rounds.append(asked)
        return Streamed(call_of_many_deltas() if len(rounds) == 1 else done._frames(message_events(["Done."])))

    rounds: list[TurnRequest] = []
    done = Model()
    watched = Watched(turn(tools=[demo_tool(server.url)]), lambda asked: run_round(asked, send), mcp, HASTY)
    events = await watched.run()
    assert events[-1].data["response"]["output"][1]["output"] == "a"


async def test_server_that_is_slow_to_list_its_tools_does_not_silence_the_stream(mcp: McpServers) -> None:
    released = asyncio.Event()

    async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await released.wait()
        writer.close()

    listener = await asyncio.start_server(slow, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/mcp"
    watched = Watched(turn(tools=[demo_tool(url)]), Model(message_events(["Hi"])), mcp, HASTY)
    async with listener, asyncio.TaskGroup() as tasks:
        running = tasks.create_task(watched.run())
        await watched.until(3)
        released.set()
    assert running.result()[-1].type == "response.completed"


async def test_stream_that_is_never_silent_for_so_long_has_no_sign(mcp: McpServers) -> None:
    events = await Watched(turn(), Model(message_events(["Hi"])), mcp, PATIENT).run()
    assert [event.type for event in events].count(SIGN) == 1


@pytest.mark.parametrize(
    ("stream", "limits"), [(False, HASTY), (True, replace(HASTY, progress_interval_s=0))], ids=["json", "turned off"]
)
async def test_client_that_waits_or_a_gateway_that_gives_no_signs_has_none(
    mcp: McpServers, stream: bool, limits: LoopLimits
) -> None:
    async def pause(payload: Json) -> None:
        await asyncio.sleep(2 * HASTY.progress_interval_s)

    model = Model(message_events(["Hi"]), pause=pause)
    events = [event async for event in run_tool_loop(turn(stream=stream), model, builtin_tool_types(mcp), limits)]
    assert [event.type for event in events].count(SIGN) == (1 if stream else 0)
    assert events[-1].type == "response.completed"


def refusing(after: Callable[[], Awaitable[None]]) -> Below:
    async def send(asked: TurnRequest) -> Any:
        await after()
        raise UpstreamError("Slow down.", http_status=429, code="rate_limit_exceeded", headers={"retry-after": "7"})

    return lambda asked: run_round(asked, send)


async def test_refusal_before_the_first_sign_is_an_http_error(mcp: McpServers) -> None:
    async def at_once() -> None:
        await asyncio.sleep(0)

    with pytest.raises(AttacheError) as refused:
        await Watched(turn(), refusing(at_once), mcp, PATIENT).run()
    assert (refused.value.http_status, refused.value.headers) == (429, {"retry-after": "7"})


async def test_refusal_after_the_first_sign_is_a_failed_response(mcp: McpServers) -> None:
    watched = Watched(turn(), refusing(lambda: watched.until(1)), mcp, HASTY)
    events = await watched.run()
    assert [event.type for event in events][-2:] == [SIGN, "response.failed"]
    assert events[-1].data["response"]["error"] == {"code": "rate_limit_exceeded", "message": "Slow down."}


async def test_signs_from_below_are_not_passed_on(mcp: McpServers) -> None:
    payloads = message_events(["Hi"])
    repeated = [{"type": SIGN, "response": payloads[0]["response"]}]
    signed = [one for payload in payloads[:-1] for one in (payload, *repeated)] + payloads[-1:]
    events = await Watched(turn(), Model(signed), mcp, PATIENT).run()
    assert [event.type for event in events].count(SIGN) == 1


async def test_closing_a_silent_turn_ends_what_is_below(mcp: McpServers) -> None:
    async def pause(payload: Json) -> None:
        await asyncio.Event().wait()

    model = Model(message_events(["Hi"]), pause=pause)
    async with (
        asyncio.timeout(WAIT_S),
        aclosing(run_tool_loop(turn(), model, builtin_tool_types(mcp), HASTY)) as events,
    ):
        assert [(await anext(events)).type for _ in range(3)] == ["response.created", SIGN, SIGN]
    assert model.closed == 1


# What fails in the middle


async def test_event_that_is_too_much_in_its_middle_takes_no_numbers(mcp: McpServers) -> None:
    """Below may tell a whole response at once; items before the one that is too large have no event of their own."""
    response = message_events(["Hi"])[-1]["response"]
    large = {**response["output"][0], "id": "msg_2", "content": [{"type": "output_text", "text": "x" * 100_000}]}

    async def below(asked: TurnRequest) -> AsyncGenerator[Event, None]:
        yield Event("response.created", message_events(["Hi"])[0])
        yield terminal_event({**response, "output": [*response["output"], large]}, 1)

    events = await Watched(turn(), below, mcp, replace(PATIENT, max_retained_bytes=64 * 1024)).run()
    assert events[-1].data["response"]["error"]["code"] == "upstream_limit"


# Padding


@pytest.mark.parametrize("options", [None, {}, {"include_obfuscation": True}, {"include_obfuscation": False}])
async def test_client_gets_padding_unless_it_says_no_and_nobody_below_is_asked_for_any(
    mcp: McpServers, options: Json | None
) -> None:
    asked: list[TurnRequest] = []
    model = Model(message_events(["Hi ", "there"]))

    def below(given: TurnRequest) -> AsyncGenerator[Event, None]:
        asked.append(given)
        return model(given)

    given = turn().with_body(**({} if options is None else {"stream_options": options}))
    events = await Watched(given, below, mcp, PATIENT).run()

    padded = [len(event.data["obfuscation"]) for event in events if "obfuscation" in event.data]
    assert padded == ([] if options == {"include_obfuscation": False} else [13, 11])
    assert asked[0].body["stream_options"] == {"include_obfuscation": False}
    assert "stream_options" not in model_request(asked[0]).body


async def test_round_without_a_loop_above_pads_as_well() -> None:
    events = [event async for event in Model(message_events(["Hi"]))(turn())]
    check_stream(events)
    assert [len(event.data["obfuscation"]) for event in events if "delta" in event.data] == [14]


def test_other_stream_options_reach_the_model() -> None:
    given = turn(stream_options={"include_obfuscation": True, "theirs": 1})
    assert model_request(given).body["stream_options"] == {"theirs": 1}


# What is kept


async def outcome(given: TurnRequest, model: Model, mcp: McpServers, limit: int) -> tuple[str, object]:
    limits = replace(PATIENT, max_retained_bytes=limit)
    try:
        events = [event async for event in run_tool_loop(given, model, builtin_tool_types(mcp), limits)]
    except UpstreamError as error:
        return f"HTTP {error.http_status}", {"code": error.code, "message": error.message}
    if given.stream:
        check_stream(events)
    return events[-1].type, events[-1].data["response"]["error"]


TEXT = "Größe 漢字 " * 200


async def kept_by(text: str, mcp: McpServers) -> int:
    """The smallest bound with which a response of this text completes."""
    low, high = 0, 64 * 1024
    while low < high:
        middle = (low + high) // 2
        kind, _ = await outcome(turn(), Model(message_events([text])), mcp, middle)
        low, high = (low, middle) if kind == "response.completed" else (middle + 1, high)
    return low


async def test_response_at_the_bound_completes_and_one_past_it_fails_however_it_is_cut(mcp: McpServers) -> None:
    edge = await kept_by(TEXT, mcp)
    assert len(TEXT.encode()) < edge < len(TEXT.encode()) + 4096
    failed = {"code": "upstream_limit", "message": f"What is kept of this response is larger than {edge - 1} bytes."}
    for size in (1, 2, 7, 1000, len(TEXT)):
        deltas = [TEXT[at : at + size] for at in range(0, len(TEXT), size)]
        assert await outcome(turn(), Model(message_events(deltas)), mcp, edge) == ("response.completed", None)
        assert await outcome(turn(), Model(message_events(deltas)), mcp, edge - 1) == ("response.failed", failed)
        waiting = turn(stream=False)
        assert await outcome(waiting, Model(message_events(deltas)), mcp, edge) == ("response.completed", None)
        assert await outcome(waiting, Model(message_events(deltas)), mcp, edge - 1) == ("HTTP 502", failed)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(min_value=0, max_value=len(TEXT)), max_size=30))
async def test_any_cut_has_the_same_sum(cuts: list[int]) -> None:
    edges = [0, *sorted(cuts), len(TEXT)]
    deltas = [TEXT[start:end] for start, end in pairwise(edges)]
    async with open_mcp_servers(McpSettings()) as mcp:
        edge = await edge_of_text(mcp)
        assert (await outcome(turn(), Model(message_events(deltas)), mcp, edge))[0] == "response.completed"
        assert (await outcome(turn(), Model(message_events(deltas)), mcp, edge - 1))[0] == "response.failed"


_known_edge: list[int] = []


async def edge_of_text(mcp: McpServers) -> int:
    if not _known_edge:
        _known_edge.append(await kept_by(TEXT, mcp))
    return _known_edge[0]


async def test_log_probabilities_have_the_same_sum_however_they_are_cut(mcp: McpServers) -> None:
    tokens = [{"token": f"{number} ", "logprob": -0.5, "bytes": [], "top_logprobs": []} for number in range(300)]

    def cut(size: int) -> Model:
        pieces = [tokens[at : at + size] for at in range(0, len(tokens), size)]
        payloads = message_events(["".join(str(token["token"]) for token in piece) for piece in pieces])
        for payload, piece in zip(payloads[3:-4], pieces, strict=True):
            payload["logprobs"] = piece
        return Model(payloads)

    limits = range(4096, 64 * 1024, 512)
    ends = [[(await outcome(turn(), cut(size), mcp, limit))[0] for limit in limits] for size in (1, 7, 300)]
    assert ends[0] == ends[1] == ends[2]
    assert set(ends[0]) == {"response.completed", "response.failed"}


async def test_bound_is_on_all_rounds_together_and_ends_the_turn(mcp: McpServers, server: RunningMcpServer) -> None:
    given = turn(tools=[demo_tool(server.url)])
    arguments = encode({"text": "x" * 4000}).decode()
    rounds = [call_events("echo", arguments)] * 6
    model = Model(*rounds, message_events(["Done."]))

    limits = replace(PATIENT, max_retained_bytes=36 * 1024, max_identical_calls=10)
    events = await Watched(given, model, mcp, limits).run()

    response = events[-1].data["response"]
    assert (events[-1].type, response["error"]["code"]) == ("response.failed", "upstream_limit")
    assert 1 < len(model.asked) < 6
    calls = [item["status"] for item in response["output"][1:]]
    assert calls == ["completed"] * (len(model.asked) - 1) + ["incomplete"]
    assert model.closed == len(model.asked)


async def test_result_past_the_bound_fails_the_turn_with_its_call_incomplete(
    mcp: McpServers, server: RunningMcpServer
) -> None:
    arguments = encode({"text": "x" * 4000}).decode()
    given = turn(tools=[demo_tool(server.url)])
    listed = [
        event async for event in run_tool_loop(given, Model(message_events([])), builtin_tool_types(mcp), PATIENT)
    ]
    size = len(encode(listed[-1].data["response"]["output"][0])) + 2 * 4000 + 1024

    events = await Watched(
        given, Model(call_events("echo", arguments)), mcp, replace(PATIENT, max_retained_bytes=size)
    ).run()

    response = events[-1].data["response"]
    assert (response["status"], response["error"]["code"]) == ("failed", "upstream_limit")
    call = response["output"][-1]
    assert (call["type"], call["status"], call["arguments"], call["output"]) == (
        "mcp_call", "incomplete", arguments, None,
    )  # fmt: skip


# Usage


def counts(total: int) -> Json:
    return {"input_tokens": total - 1, "output_tokens": 1, "total_tokens": total}


@pytest.mark.parametrize(
    ("first", "second", "total"),
    [(counts(5), counts(7), 12), (counts(5), None, 5), (None, counts(7), 7), ({}, counts(7), 7), (None, None, None)],
)
async def test_usage_is_the_sum_of_the_rounds_that_reported_any(
    mcp: McpServers, server: RunningMcpServer, first: Json | None, second: Json | None, total: int | None
) -> None:
    model = Model(call_events("echo", '{"text": "a"}', first), message_events(["Hi"], second))
    events = await Watched(turn(tools=[demo_tool(server.url)]), model, mcp, PATIENT).run()
    expected = None if total is None else {
        "input_tokens": total - (2 if first and second else 1),
        "input_tokens_details": {"cache_write_tokens": 0, "cached_tokens": 0},
        "output_tokens": 2 if first and second else 1,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": total,
    }  # fmt: skip
    assert events[-1].data["response"]["usage"] == expected


# Failures


async def test_below_that_ends_without_saying_how_is_a_failed_response(mcp: McpServers) -> None:
    async def below(asked: TurnRequest) -> AsyncGenerator[Event, None]:
        async with aclosing(Model(message_events(["Hi"]))(asked)) as events:
            async for event in events:
                if event.type == "response.output_text.done":
                    return
                yield event

    events = await Watched(turn(), below, mcp, PATIENT).run()
    response = events[-1].data["response"]
    assert (events[-1].type, response["error"]["code"]) == ("response.failed", "server_error")
    assert [(item["status"], item["content"][0]["text"]) for item in response["output"]] == [("incomplete", "Hi")]


async def test_item_of_a_failed_round_is_closed_as_incomplete_before_the_one_terminal_event(mcp: McpServers) -> None:
    async def pause(payload: Json) -> None:
        if payload["type"] == "response.output_text.done":
            raise UpstreamError("It broke.", code="upstream_broke_off")

    events = await Watched(turn(), Model(message_events(["Hi"]), pause=pause), mcp, PATIENT).run()
    assert [event.type for event in events][-4:] == [
        "response.output_text.done", "response.content_part.done", "response.output_item.done", "response.failed",
    ]  # fmt: skip
    assert events[-2].data["item"]["status"] == "incomplete"
    assert events[-1].data["response"]["error"] == {"code": "upstream_broke_off", "message": "It broke."}


def terminal(status: str, **fields: object) -> Below:
    async def below(asked: TurnRequest) -> AsyncGenerator[Event, None]:
        yield terminal_event({"id": "r", "status": status, "output": [], **fields})

    return below


@pytest.mark.parametrize("stream", [False, True])
async def test_incomplete_stays_incomplete_with_its_details(mcp: McpServers, stream: bool) -> None:
    details = {"reason": "content_filter"}
    below = terminal("incomplete", incomplete_details=details)
    *_, last = [event async for event in run_tool_loop(turn(stream=stream), below, builtin_tool_types(mcp), PATIENT)]
    response = last.data["response"]
    assert (last.type, response["incomplete_details"]) == ("response.incomplete", details)
