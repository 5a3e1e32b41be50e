"""A web server on loopback that answers as it is told: search providers' answers, pages, redirects, faults.

Knows HTTP only as `model_http` speaks it; unaware of what an answer means. Records every request, so that a test can
say what was sent where, and what was not.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from http import HTTPStatus

from attache_core.json_codec import encode
from attache_core.testing.model_http import Connection, ReceivedRequest, Service
from attache_core.testing.model_play import Reset, Step, Wait


@dataclass(frozen=True, slots=True)
class WebAnswer:
    """One answer.

    Attributes:
        how: `whole`; `hang`, which never comes; `cut`, which breaks off within the body.
    """

    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    how: str = "whole"


def web_json(body: object, status: int = 200, **headers: str) -> WebAnswer:
    """An answer in JSON; underscores in names of headers are hyphens."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return WebAnswer(encode(body), status, {"content-type": "application/json", **named})


def web_page(html: str, content_type: str = "text/html; charset=utf-8") -> WebAnswer:
    """A page, encoded as UTF-8 whatever its type says."""
    return WebAnswer(html.encode(), headers={"content-type": content_type})


def web_redirect(location: str, status: int = 302) -> WebAnswer:
    """A redirect."""
    return WebAnswer(status=status, headers={"location": location})


Answering = WebAnswer | Callable[[ReceivedRequest], WebAnswer]


class SearchServer(Service):
    """The server. Made by `running_search_server`.

    Attributes:
        url: of its root, without a slash at the end.
        answers: by path without query; what is not here is answered 404.
        requests: what was asked, in its order.
    """

    def __init__(self, answers: Mapping[str, Answering], tasks: asyncio.TaskGroup) -> None:
        self.url = ""
        self.answers = dict(answers)
        self.requests: list[ReceivedRequest] = []
        self.released = asyncio.Event()
        self.tasks = tasks
        self.most_at_once = 0
        self._playing = 0
        self._connections: set[Connection] = set()

    def respond(self, request: ReceivedRequest) -> Sequence[Step]:
        self.requests.append(request)
        answering = self.answers.get(request.path.partition("?")[0], WebAnswer(status=404))
        return _steps(answering if isinstance(answering, WebAnswer) else answering(request))

    def connected(self, connection: Connection) -> None:
        self._connections.add(connection)

    def disconnected(self, connection: Connection, *, abandoned: bool) -> None:
        del abandoned
        self._connections.discard(connection)

    def playing_changed(self, change: int) -> None:
        self._playing += change
        self.most_at_once = max(self.most_at_once, self._playing)

    def close(self) -> None:
        """Drop all connections."""
        for connection in list(self._connections):
            connection.abort()


@asynccontextmanager
async def running_search_server(answers: Mapping[str, Answering] | None = None) -> AsyncIterator[SearchServer]:
    """A server on a free port of 127.0.0.1, for as long as the block lasts."""
    async with asyncio.TaskGroup() as tasks:
        service = SearchServer(answers or {}, tasks)
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: Connection(service), "127.0.0.1", 0)
        service.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        try:
            yield service
        finally:
            server.close()
            service.released.set()
            service.close()
            await server.wait_closed()


def _steps(answer: WebAnswer) -> list[Step]:
    if answer.how == "hang":
        return [Wait(None)]
    phrase = HTTPStatus(answer.status).phrase
    headers = {"content-length": str(len(answer.body)), **answer.headers}
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    whole = f"HTTP/1.1 {answer.status} {phrase}\r\n{lines}\r\n".encode("latin-1") + answer.body
    return [whole[: -len(answer.body) // 2], Reset()] if answer.how == "cut" else [whole]
