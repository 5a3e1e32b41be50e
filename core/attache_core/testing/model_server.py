"""A scripted, stateless inference server: for the demo, for tests, for benchmarks.

It speaks `POST /v1/responses` (JSON and server-sent events) in the dialect of a real server, the same answers as
`POST /v1/chat/completions`, `GET /v1/models` and `GET /health`; everything else is 404. What the model says comes from
a script (`model_script`), or, without one, from a few rules that suit the demo. It remembers what it was sent and
notices clients that leave, and refuses what a stateless server must refuse (`model_rules`, `model_chat_rules`).

    async with running_model_server([text("Hello.")]) as server:
        ...
        assert server.requests[0].body["input"] == "Hi"

From a shell: `python -m attache_core.testing.model_server --port 0`.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import get_args

import uvloop

from attache_core.testing.model_bench import bench_steps
from attache_core.testing.model_chat_rules import chat_refusal_of
from attache_core.testing.model_http import Connection, ReceivedRequest, Service
from attache_core.testing.model_play import CHAT_COMPLETIONS, Spoken, Step, error_steps, json_steps, steps_of
from attache_core.testing.model_rules import default_answer, refusal_of
from attache_core.testing.model_script import Dialect, Reply
from attache_core.testing.model_wire.wire import DEFAULT_MODEL

__all__ = ["Answer", "ModelServer", "ReceivedRequest", "running_model_server"]

Answer = Callable[[ReceivedRequest], Reply] | Sequence[Reply]
"""What the model says: one reply for each request, in order, or a function of the request."""

MAX_REMEMBERED_REQUESTS = 1_000
"""So many requests are kept; later ones are only counted."""

WAIT_S = 5.0
"""How long the `wait_for_*` methods wait before they raise TimeoutError."""


class ModelServer(Service):
    """A running model server; made by `running_model_server`.

    Attributes:
        url: such as `http://127.0.0.1:40001`, without `/v1`.
        requests: what `POST /v1/responses` and `POST /v1/chat/completions` got, in order, refused requests included.
        other_requests: what every other path got, but for `GET /health`.
        request_count: how many came to these two, remembered or not.
        open_streams: answers under way that wait for something: a script's pace, an event, the client.
        cancelled: how many of them a client did not wait for.
    """

    def __init__(
        self,
        answer: Answer | None,
        tasks: asyncio.TaskGroup,
        *,
        dialect: Dialect,
        bench: bool,
    ) -> None:
        self.url = ""
        self.requests: list[ReceivedRequest] = []
        self.other_requests: list[ReceivedRequest] = []
        self.request_count = 0
        self.open_streams = 0
        self.cancelled = 0
        self.tasks = tasks
        self.released = asyncio.Event()
        self._answer: Answer = default_answer if answer is None else answer
        self._dialect = dialect
        self._bench = bench
        self._max_remembered = 0 if bench else MAX_REMEMBERED_REQUESTS
        self._answered = 0
        self._connections: set[Connection] = set()
        self._waiters: list[asyncio.Event] = []

    def release(self) -> None:
        """Let every stalled answer, and every one to come, go on."""
        self.released.set()

    async def wait_for_requests(self, count: int, *, timeout_s: float = WAIT_S) -> None:
        """Return once `count` requests for an answer have come since the start."""
        await self._until(lambda: self.request_count >= count, timeout_s)

    async def wait_for_disconnect(self, count: int = 1, *, timeout_s: float = WAIT_S) -> None:
        """Return once clients have left `count` answers unfinished since the start."""
        await self._until(lambda: self.cancelled >= count, timeout_s)

    async def wait_for_idle(self, *, timeout_s: float = WAIT_S) -> None:
        """Return once no answer is under way."""
        await self._until(lambda: self.open_streams == 0, timeout_s)

    def respond(self, request: ReceivedRequest) -> Sequence[Step]:
        path = request.path.partition("?")[0]
        if (request.method, path) == ("POST", "/v1/responses"):
            return self._infer(request, self._dialect)
        if (request.method, path) == ("POST", "/v1/chat/completions"):
            return self._infer(request, CHAT_COMPLETIONS)
        if (request.method, path) == ("GET", "/health"):
            return json_steps(200, {"status": "ok"})
        if len(self.other_requests) < self._max_remembered:
            self.other_requests.append(request)
        if (request.method, path) == ("GET", "/v1/models"):
            return json_steps(200, _MODELS)
        return error_steps(self._dialect, 404, f"There is no {request.method} {path} here.")

    def connected(self, connection: Connection) -> None:
        self._connections.add(connection)

    def disconnected(self, connection: Connection, *, abandoned: bool) -> None:
        self._connections.discard(connection)
        self.cancelled += abandoned
        self._changed()

    def playing_changed(self, change: int) -> None:
        self.open_streams += change
        self._changed()

    async def disconnect_all(self) -> None:
        """Abort every connection, and return when they are gone."""
        for connection in list(self._connections):
            connection.abort()
        await self._until(lambda: not self._connections, WAIT_S)

    def _infer(self, request: ReceivedRequest, spoken: Spoken) -> Sequence[Step]:
        self.request_count += 1
        if len(self.requests) < self._max_remembered:
            self.requests.append(request)
        self._changed()
        chat = spoken == CHAT_COMPLETIONS
        if self._bench and not chat and (canned := bench_steps(request.body)):
            return canned
        if refusal := (chat_refusal_of if chat else refusal_of)(request.body):
            return error_steps(spoken, 400, refusal.message, refusal.param)
        return self._scripted(request, spoken)

    def _scripted(self, request: ReceivedRequest, spoken: Spoken) -> Sequence[Step]:
        place = self._answered
        self._answered += 1
        if not callable(self._answer):
            if place >= len(self._answer):
                message = f"The script has {len(self._answer)} replies; this is request {place + 1}."
                return error_steps(spoken, 500, message)
            return steps_of(self._answer[place], request.body, spoken)
        try:
            reply = self._answer(request)
        except Exception as error:  # noqa: BLE001 - the script is its author's code: say what it did, and go on
            return error_steps(spoken, 500, f"The script failed: {error!r}")
        return steps_of(reply, request.body, spoken)

    def _changed(self) -> None:
        for waiter in self._waiters:
            waiter.set()

    async def _until(self, reached: Callable[[], bool], timeout_s: float) -> None:
        waiter = asyncio.Event()
        self._waiters.append(waiter)
        try:
            async with asyncio.timeout(timeout_s):
                while not reached():
                    waiter.clear()
                    await waiter.wait()
        finally:
            self._waiters.remove(waiter)


_MODELS = {
    "object": "list",
    "data": [
        {
            "id": DEFAULT_MODEL,
            "object": "model",
            "created": 1767225600,
            "owned_by": "attache",
            "root": DEFAULT_MODEL,
            "parent": None,
            "max_model_len": 40960,
            "permission": [],
        }
    ],
}


@asynccontextmanager
async def running_model_server(
    answer: Answer | None = None,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    dialect: Dialect = "vllm",
    bench: bool = False,
) -> AsyncIterator[ModelServer]:
    """Serve while the block runs; then every connection is aborted.

    Args:
        answer: the script; None for the demo's rules. A sequence that runs out answers 500.
        port: 0 for a free one.
        dialect: whose wire a reply is written in unless it names another.
        bench: also answer the models of `model_bench`, and remember no request.
    """
    try:
        async with asyncio.TaskGroup() as tasks:
            served = ModelServer(answer, tasks, dialect=dialect, bench=bench)
            listener = await asyncio.get_running_loop().create_server(lambda: Connection(served), host, port)
            served.url = f"http://{host}:{listener.sockets[0].getsockname()[1]}"
            try:
                yield served
            finally:
                listener.close()
                await served.disconnect_all()
    except BaseExceptionGroup as failures:
        if len(failures.exceptions) > 1:
            raise
        # A test's failed assertion must reach it as it was raised, not wrapped by the task group.
        raise failures.exceptions[0] from None


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve until SIGTERM or SIGINT, then exit 0."""
    parser = argparse.ArgumentParser(prog="python -m attache_core.testing.model_server", description=_ABOUT)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0 for a free one")
    parser.add_argument("--dialect", choices=get_args(Dialect), default="vllm")
    parser.add_argument("--bench", action="store_true", help="canned answers for benchmarks; nothing is remembered")
    uvloop.run(_serve(parser.parse_args(arguments)))


async def _serve(options: argparse.Namespace) -> None:
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    serving = running_model_server(host=options.host, port=options.port, dialect=options.dialect, bench=options.bench)
    async with serving as server:
        sys.stdout.write(f"listening {server.url}\n")
        sys.stdout.flush()
        await stopped.wait()


_ABOUT = "A scripted inference server that speaks vLLM's Responses API, for demos and benchmarks."


if __name__ == "__main__":
    main()
