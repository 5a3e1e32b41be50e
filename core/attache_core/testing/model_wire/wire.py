"""The order in which every inference server tells an answer: created, items one by one, a terminal event.

Unaware of any server's field names; a subclass gives each event its shape. A wire is made for one request and one
answer, and its ids are made with it, so that the plain and the streamed form can be compared.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from uuid import uuid4

from attache_core.json_codec import Json, encode
from attache_core.testing.model_script import Failure, FunctionCall, Item, Message, Reasoning, Said, sse_event

DEFAULT_MODEL = "attache-demo"


class Wire(ABC):
    """One answer to one create request, in one dialect."""

    def __init__(self, request: Json, said: Said) -> None:
        self.request = request
        self.said = said
        self.model = str(request.get("model") or DEFAULT_MODEL)
        self.created_at = int(time.time())
        self.response_id = f"resp_{new_id()}"

    @abstractmethod
    def response(self) -> Json:
        """The whole answer, as a plain request gets it and as the terminal event carries it."""

    def events(self) -> list[Json]:
        """The payloads of the whole stream, in order."""
        return list(self._told())

    def frames(self) -> list[bytes]:
        """The same as bytes."""
        return [sse_event(payload) for payload in self.events()]

    def error_body(self, status: int, message: str, code: str | None = None, param: str | None = None) -> Json:
        """The body of an HTTP error, in OpenAI's shape unless the server has its own."""
        kind = "invalid_request_error" if status < 500 else "server_error"
        return {"error": {"message": message, "type": kind, "param": param, "code": code}}

    def terminal_type(self) -> str:
        """The type of the event that ends a stream that did not fail."""
        return "response.incomplete" if self.said.incomplete_reason else "response.completed"

    @abstractmethod
    def opening(self) -> Json:
        """The response as it stands before the first item."""

    @abstractmethod
    def failed(self, failure: Failure) -> Json:
        """The response as `response.failed` carries it."""

    @abstractmethod
    def message_events(self, index: int, item: Message) -> Iterator[Json]:
        """The life of a message."""

    @abstractmethod
    def reasoning_events(self, index: int, item: Reasoning) -> Iterator[Json]:
        """The life of a reasoning item."""

    @abstractmethod
    def call_events(self, index: int, item: FunctionCall) -> Iterator[Json]:
        """The life of a function call."""

    def token_counts(self) -> tuple[int, int]:
        """Tokens of input and output: the script's, or four bytes of input and one delta of output for each."""
        if self.said.usage:
            return self.said.usage
        said = sum(len(deltas_of(item)) for item in self.said.items)
        return max(1, len(encode(self.request.get("input"))) // 4), said

    def _told(self) -> Iterator[Json]:
        yield {"type": "response.created", "response": self.opening()}
        yield {"type": "response.in_progress", "response": self.opening()}
        yield from self._items_told()
        failure = self.said.failure
        if failure is None:
            yield {"type": self.terminal_type(), "response": self.response()}
            return
        if failure.form != "failed":
            yield {
                "type": "error",
                "error": self.error_body(failure.http_status, failure.message, failure.code)["error"],
            }
        if failure.form != "error":
            yield {"type": "response.failed", "response": self.failed(failure)}

    def _items_told(self) -> Iterator[Json]:
        for index, item in enumerate(self.said.items):
            match item:
                case Message():
                    yield from self.message_events(index, item)
                case Reasoning():
                    yield from self.reasoning_events(index, item)
                case FunctionCall():
                    yield from self.call_events(index, item)


def new_id() -> str:
    """Sixteen hexadecimal digits that no other id shares."""
    return uuid4().hex[:16]


def deltas_of(item: Item) -> tuple[str, ...]:
    """The pieces in which an item is streamed: a call's name and arguments come in pieces of eight characters."""
    return pieces_of(item.arguments) if isinstance(item, FunctionCall) else item.deltas


def pieces_of(arguments: str) -> tuple[str, ...]:
    """Arguments as they are streamed, eight characters at a time."""
    return tuple(arguments[start : start + 8] for start in range(0, len(arguments), 8))


def numbered(events: Iterator[Json]) -> Iterator[Json]:
    """Give each event its `sequence_number`, from 0."""
    for number, event in enumerate(events):
        yield {**event, "sequence_number": number}
