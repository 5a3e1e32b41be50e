"""The model server over real sockets: what clients get, what it remembers, what it notices and refuses."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from time import monotonic_ns
from typing import Any

import httpx
import pytest
from openai import AsyncOpenAI

from attache_core.json_codec import Json, decode
from attache_core.testing.model_http import MAX_QUEUED_REQUESTS
from attache_core.testing.model_script import (
    SOME_TEXT,
    Reply,
    call,
    dies_after,
    ends_without_terminal,
    function_calls,
    garbage,
    held,
    http_error,
    in_dialect,
    incomplete,
    paced,
    raw,
    reasoning_then,
    replay,
    says,
    stalls_after,
    stream_error,
    text,
    thinks,
)
from attache_core.testing.model_server import Answer, ModelServer, ReceivedRequest, running_model_server

RECORDINGS = Path(__file__).parents[2] / "cassettes" / "llama_cpp"
TOOL = {"type": "function", "name": "mcp__weather__get_weather", "parameters": {"required": ["city"]}}


@asynccontextmanager
async def served(answer: Answer | None = None, **options: Any) -> AsyncIterator[tuple[ModelServer, httpx.AsyncClient]]:
    """A model server and a client of it."""
    async with (
        running_model_server(answer, **options) as server,
        httpx.AsyncClient(base_url=server.url, timeout=5.0, trust_env=False) as client,
    ):
        yield server, client


async def ask(client: httpx.AsyncClient, **body: Any) -> httpx.Response:
    return await client.post("/v1/responses", json={"model": "m", "input": "Hi", **body})


async def events_of(client: httpx.AsyncClient, **body: Any) -> list[Json]:
    response = await ask(client, stream=True, **body)
    return [decode(line[6:]) for line in response.text.split("\n") if line.startswith("data: ")]


def output_text(response: httpx.Response) -> str:
    body: Json = response.json()
    return "".join(part["text"] for item in body["output"] if item["type"] == "message" for part in item["content"])


@pytest.mark.parametrize("dialect", ["vllm", "openai"])
async def test_openai_sdk_reads_plain_and_streamed_text(dialect: Any) -> None:
    said = reasoning_then("Let me see.", "It is sunny.")
    async with (
        running_model_server([said, said], dialect=dialect) as server,
        AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0, timeout=5.0) as client,
    ):
        plain = await client.responses.create(model="m", input="Hi")
        async with client.responses.stream(model="m", input="Hi") as stream:
            streamed = await stream.get_final_response()
    assert (plain.output_text, streamed.output_text) == ("It is sunny.", "It is sunny.")


async def test_items_are_the_same_streamed_and_plain() -> None:
    reply = says(thinks("Both."), "Looking.", call("a", {"x": 1}, call_id="c1"), call("b", {}, call_id="c2"))
    async with served([reply, reply]) as (_, client):
        plain = (await ask(client)).json()["output"]
        streamed = (await events_of(client))[-1]["response"]["output"]
    drop_ids = [[{**item, "id": None} for item in output] for output in (plain, streamed)]
    assert drop_ids[0] == drop_ids[1]
    assert [item["type"] for item in plain] == ["reasoning", "message", "function_call", "function_call"]


async def test_requests_are_remembered_with_headers_and_bytes() -> None:
    async with served([text("Hello.")]) as (server, client):
        content = b'{"input": "Hi",  "model": "m"}'
        await client.post("/v1/responses?x=1", content=content, headers={"X-Mine": "yes"})
        request = server.requests[0]
    assert (request.method, request.path, request.headers["x-mine"]) == ("POST", "/v1/responses?x=1", "yes")
    assert (request.body, request.raw) == ({"input": "Hi", "model": "m"}, content)


async def test_sequence_that_runs_out_answers_500() -> None:
    async with served([text("One.")]) as (_, client):
        statuses = [(await ask(client)).status_code, (await ask(client)).status_code]
        message = (await ask(client)).json()["error"]["message"]
    assert (statuses, message) == ([200, 500], "The script has 1 replies; this is request 3.")


async def test_function_answers_by_request() -> None:
    def echo(request: ReceivedRequest) -> Reply:
        return text(request.body["input"])

    async with served(echo) as (_, client):
        assert output_text(await ask(client, input="Echo me")) == "Echo me"


async def test_function_that_raises_answers_500_that_says_so() -> None:
    def broken(request: ReceivedRequest) -> Reply:
        raise KeyError(request.method)

    async with served(broken) as (_, client):
        response = await ask(client)
    assert (response.status_code, "KeyError('POST')" in response.text) == (500, True)


REFUSED: list[tuple[str, dict[str, Any]]] = [
    ("previous_response_id", {"previous_response_id": "resp_1"}),
    ("conversation", {"conversation": "conv_1"}),
    ("input", {"input": 42}),
    ("tools[1].type", {"tools": [TOOL, {"type": "mcp", "server_label": "x"}]}),
    ("tools[0].type", {"tools": [{"type": "web_search"}]}),
    ("input[0].type", {"input": [{"type": "mcp_call", "name": "x"}]}),
    ("input[1].type", {"input": [{"role": "user", "content": "Hi"}, {"type": "mcp_list_tools"}]}),
    ("input[0].type", {"input": [{"type": "item_reference", "id": "msg_1"}]}),
    ("input[0].content", {"input": [{"role": "user", "content": [{"type": "hologram"}]}]}),
    ("input[0].call_id", {"input": [{"type": "function_call_output", "call_id": "c1", "output": "x"}]}),
]


@pytest.mark.parametrize(("param", "body"), REFUSED)
async def test_stateful_or_unknown_request_answers_400(param: str, body: dict[str, Any]) -> None:
    async with served([]) as (server, client):
        response = await ask(client, **body)
        assert server.request_count == 1
    assert (response.status_code, response.json()["error"]["param"]) == (400, param)


async def test_llama_cpp_refusal_has_its_error_shape() -> None:
    async with served([], dialect="llama_cpp") as (_, client):
        response = await ask(client, input=42)
    assert response.json() == {
        "error": {
            "code": 400,
            "message": "'input' must be a string or array of objects",
            "type": "invalid_request_error",
        }
    }


async def test_models_and_health_answer_and_other_paths_do_not() -> None:
    async with served() as (server, client):
        models = (await client.get("/v1/models")).json()["data"]
        statuses = [(await client.get(path)).status_code for path in ("/health", "/v1/nothing")]
        others = [request.path for request in server.other_requests]
        inference = server.requests
    assert [model["id"] for model in models] == ["attache-demo"]
    assert (statuses, others, inference) == ([200, 404], ["/v1/models", "/v1/nothing"], [])


async def test_http_error_without_body_is_the_dialects_own() -> None:
    async with served([http_error(429, headers={"retry-after": "3"}, message="Slow down.")]) as (_, client):
        response = await ask(client, stream=True)
    assert (response.status_code, response.headers["retry-after"]) == (429, "3")
    assert response.json() == {
        "error": {"message": "Slow down.", "type": "BadRequestError", "param": None, "code": 429}
    }


async def test_http_error_with_bytes_sends_them() -> None:
    async with served([http_error(503, b"upstream connect error")]) as (_, client):
        response = await ask(client)
    assert (response.status_code, response.content) == (503, b"upstream connect error")


@pytest.mark.parametrize(("stream", "content_type"), [(False, "application/json"), (True, "text/event-stream")])
async def test_garbage_has_the_content_type_that_was_asked_for(stream: bool, content_type: str) -> None:
    async with served([garbage(b"\xff{")]) as (_, client):
        response = await ask(client, stream=stream)
    assert (response.content, response.headers["content-type"].startswith(content_type)) == (b"\xff{", True)


async def test_raw_answer_is_sent_as_it_is() -> None:
    async with served([raw(207, {"content-type": "text/x", "x-a": "b"}, [b"one", b"two"])]) as (_, client):
        response = await ask(client)
    assert (response.status_code, response.content) == (207, b"onetwo")
    assert (response.headers["content-type"], response.headers["x-a"]) == ("text/x", "b")


async def test_stream_error_plain_is_an_http_error() -> None:
    reply = in_dialect("openai", stream_error("Too long.", code="context_length_exceeded", http_status=400))
    async with served([reply]) as (_, client):
        response = await ask(client)
    assert (response.status_code, response.json()["error"]["code"]) == (400, "context_length_exceeded")


async def test_dialect_that_cannot_say_it_answers_500() -> None:
    async with served([in_dialect("llama_cpp", incomplete())]) as (_, client):
        response = await ask(client, stream=True)
    assert (response.status_code, "no way to say" in response.text) == (500, True)


async def streamed_until_it_breaks(client: httpx.AsyncClient, **body: Any) -> tuple[bytes, bool]:
    """What came of a streamed answer, and whether it ended cleanly."""
    received = b""
    try:
        async with client.stream("POST", "/v1/responses", json={"model": "m", "input": "Hi", **body}) as response:
            async for part in response.aiter_raw():
                received += part
    except httpx.TransportError:
        return received, False
    return received, True


@pytest.mark.parametrize("count", [0, 1, 5])
async def test_stream_that_dies_has_sent_as_many_events(count: int) -> None:
    async with served([dies_after(count), text("Alive.")]) as (server, client):
        received, clean = await streamed_until_it_breaks(client, stream=True)
        assert (received.count(b"\ndata: "), clean) == (count, False)
        assert output_text(await ask(client)) == "Alive."
        await server.wait_for_idle()
        assert server.cancelled == 0


async def test_plain_answer_that_dies_is_cut_in_the_middle() -> None:
    async with served([dies_after(1)]) as (_, client):
        received, clean = await streamed_until_it_breaks(client)
    assert (received.startswith(b'{"id"'), received.endswith(b"}"), clean) == (True, False, False)


async def test_stream_without_terminal_ends_cleanly_after_the_last_item() -> None:
    async with served([ends_without_terminal()]) as (_, client):
        types = [event["type"] for event in await events_of(client)]
    assert (types[0], types[-1]) == ("response.created", "response.output_item.done")


async def test_plain_answer_without_terminal_is_half_a_document() -> None:
    async with served([ends_without_terminal()]) as (_, client):
        response = await ask(client)
    assert (response.content[:5], response.content[-1:] == b"}") == (b'{"id"', False)


async def test_abandoned_stream_is_noticed() -> None:
    async with served([stalls_after(2)]) as (server, client):
        async with client.stream("POST", "/v1/responses", json={"input": "Hi", "stream": True}) as response:
            await anext(aiter(response.aiter_lines()))
            assert (server.open_streams, server.cancelled) == (1, 0)
        await server.wait_for_disconnect()
        assert (server.open_streams, server.cancelled) == (0, 1)


async def test_stalled_answer_goes_on_when_released() -> None:
    async with served([stalls_after(None), stalls_after(3), stalls_after(0)]) as (server, client):
        async with asyncio.TaskGroup() as tasks:
            plain = tasks.create_task(ask(client))
            await server.wait_for_requests(1)
            streamed = tasks.create_task(events_of(client))
            await server.wait_for_requests(2)
            assert server.open_streams == 2
            server.release()
        assert output_text(plain.result()) == SOME_TEXT
        assert streamed.result()[-1]["type"] == "response.completed"


async def test_held_answer_goes_on_when_its_event_is_set() -> None:
    go = asyncio.Event()
    async with served([held(go, after_events=1)]) as (server, client):
        async with client.stream("POST", "/v1/responses", json={"input": "Hi", "stream": True}) as response:
            lines = response.aiter_lines()
            first = await anext(lines)
            go.set()
            rest = [line async for line in lines]
        assert (first, rest.count("event: response.completed")) == ("event: response.created", 1)
        assert server.cancelled == 0


async def test_paced_answer_is_complete() -> None:
    async with served([paced(0.001), paced(0.001)]) as (_, client):
        assert (await events_of(client))[-1]["type"] == "response.completed"
        assert output_text(await ask(client)) == SOME_TEXT


async def test_replayed_stream_is_served_byte_for_byte() -> None:
    recording = RECORDINGS / "text-gemma3-270m-streaming.yaml"
    async with served([replay(recording), replay(recording)]) as (_, client):
        streamed = await events_of(client)
        plain = (await ask(client)).json()
    assert streamed[0]["response"]["id"] == "resp_H9ALYrfOVksJIuPfEFsq35fxOQuNXftx"
    assert plain == streamed[-1]["response"]


async def test_replayed_json_cannot_be_streamed() -> None:
    recording = RECORDINGS / "text-gemma3-270m-nonstreaming.yaml"
    async with served([replay(recording), replay(recording)]) as (_, client):
        assert (await ask(client)).json()["id"] == "resp_dbG2tVblqCJa2pvxITHCU61wja4AjwOO"
        assert (await ask(client, stream=True)).status_code == 500


async def test_pipelined_requests_are_answered_in_order() -> None:
    count = MAX_QUEUED_REQUESTS * 2

    def slow_first(request: ReceivedRequest) -> Reply:
        asked = request.body["input"]
        return paced(0.02, text(asked)) if asked == "0" else text(asked)

    async with running_model_server(slow_first) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(server.url.rpartition(":")[2]))
        bodies = [f'{{"input": "{place}"}}' for place in range(count)]
        head = "POST /v1/responses HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n{}"
        writer.write("".join(head.format(len(body), body) for body in bodies).encode())
        said = []
        async with asyncio.timeout(5):
            for _ in range(count):
                headers = await reader.readuntil(b"\r\n\r\n")
                length = int(headers.partition(b"content-length: ")[2].partition(b"\r")[0])
                said.append(decode(await reader.readexactly(length))["output"][0]["content"][0]["text"])
        writer.close()
        await writer.wait_closed()
    assert said == [str(place) for place in range(count)]


async def test_what_is_not_http_answers_400_and_closes() -> None:
    async with running_model_server([]) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(server.url.rpartition(":")[2]))
        writer.write(b"\x16\x03\x01 hello\r\n\r\n")
        async with asyncio.timeout(5):
            answer = await reader.read()
        writer.close()
        await writer.wait_closed()
    assert answer.startswith(b"HTTP/1.1 400 Bad Request\r\n")


async def test_large_bodies_pass_both_ways() -> None:
    large = "x" * 3_000_000
    async with served(lambda request: text(request.body["input"])) as (_, client):
        assert output_text(await ask(client, input=large)) == large


async def test_failed_assertion_leaves_the_block_as_it_was_raised() -> None:
    with pytest.raises(AssertionError, match=r"^mine$"):
        async with running_model_server([]):
            raise AssertionError("mine")


USER: Json = {"role": "user", "content": [{"type": "input_text", "text": "How is the weather in New York?"}]}
CALL: Json = {"type": "function_call", "call_id": "c1", "name": "get_weather", "arguments": "{}"}


async def test_demo_asked_for_the_weather_calls_the_tool() -> None:
    async with served() as (_, client):
        item = (await ask(client, input=[USER], tools=[TOOL])).json()["output"][0]
    assert (item["type"], item["name"], item["arguments"]) == ("function_call", TOOL["name"], '{"city": "New York"}')


async def test_demo_given_outputs_quotes_them() -> None:
    output: Json = {"type": "function_call_output", "call_id": "c1", "output": "21 degrees"}
    async with served() as (_, client):
        response = await ask(client, input=[USER, CALL, output], tools=[TOOL])
    assert output_text(response) == "The tool says: 21 degrees"


@pytest.mark.parametrize("changes", [{"tools": []}, {"tools": [TOOL], "tool_choice": "none"}])
async def test_demo_without_a_tool_to_call_counts_its_input(changes: dict[str, Any]) -> None:
    async with served() as (_, client):
        response = await ask(client, input=[USER], **changes)
    assert output_text(response) == "This is m. I was given 1 input item."


async def test_demo_without_a_city_asks_for_paris() -> None:
    async with served() as (_, client):
        item = (await ask(client, input="What's the weather?", tools=[TOOL])).json()["output"][0]
    assert item["arguments"] == '{"city": "Paris"}'


@pytest.mark.parametrize("model", ["bench-20", "bench-20@2000"])
async def test_bench_model_streams_its_number_of_deltas(model: str) -> None:
    async with served(bench=True) as (server, client):
        types = [event["type"] for event in await events_of(client, model=model)]
        plain = output_text(await ask(client, model=model))
        assert (server.requests, server.request_count) == ([], 2)
    assert (types.count("response.output_text.delta"), len(plain.split())) == (20, 20)


async def test_paced_bench_model_says_in_each_delta_when_it_was_sent() -> None:
    async with served(bench=True) as (_, client):
        before_us = monotonic_ns() // 1000
        events = await events_of(client, model="bench-3@100")
        after_us = monotonic_ns() // 1000
    deltas = [event["delta"] for event in events if event["type"] == "response.output_text.delta"]
    times = [int(delta) for delta in deltas]
    assert [before_us, *times, after_us] == sorted([before_us, *times, after_us])
    assert len(times) == 3
    assert events[-1]["response"]["output"][0]["content"][0]["text"] == "".join(deltas)


async def test_bench_call_calls_the_first_tool_and_then_answers() -> None:
    output: Json = {"type": "function_call_output", "call_id": "c1", "output": "21"}
    async with served(bench=True) as (_, client):
        first = await ask(client, model="bench-call", input=[USER], tools=[TOOL])
        second = await ask(client, model="bench-call", input=[USER, CALL, output], tools=[TOOL])
    assert [item["type"] for response in (first, second) for item in response.json()["output"]] == [
        "function_call",
        "message",
    ]


async def test_bench_server_with_another_model_answers_as_the_demo() -> None:
    async with served(bench=True) as (_, client):
        assert output_text(await ask(client, model="other")) == "This is other. I was given 1 input item."


@pytest.mark.parametrize("options", [[], ["--bench"]])
async def test_command_prints_its_url_and_exits_0_on_sigterm(options: list[str]) -> None:
    command = (sys.executable, "-m", "attache_core.testing.model_server", "--port", "0", *options)
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    try:
        async with asyncio.timeout(5), httpx.AsyncClient(trust_env=False) as client:
            line = (await process.stdout.readline()).decode()
            url = line.removeprefix("listening ").strip()
            answer = await client.post(f"{url}/v1/responses", json={"model": "bench-3", "input": "Hi"})
            process.send_signal(signal.SIGTERM)
            code = await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
    assert (line.startswith("listening http://127.0.0.1:"), answer.status_code, code) == (True, 200, 0)


async def test_function_calls_of_one_round_come_in_order() -> None:
    reply = function_calls(call("a", {}), call("b", {}), call("a", {"x": [1]}))
    async with served([reply]) as (_, client):
        output = (await ask(client)).json()["output"]
    assert [(item["name"], item["arguments"]) for item in output] == [("a", "{}"), ("b", "{}"), ("a", '{"x": [1]}')]
