"""What a scripted model says, and how its answer goes wrong: the vocabulary of scripts for the model server.

Knows no wire format and no transport: a reply holds items, in order, and what interrupts them; `model_wire` shapes them
for one inference server's dialect, `model_play` cuts and paces them. Every reply answers a plain and a streamed request
with the same items. Values only; the functions read like the sentence that a test wants to say:

    function_calls(call("get_weather", {"city": "Paris"}))
    dies_after(4, text("It is sunny in Paris."))
    paced(0.01, reasoning_then("Let me think.", "Sunny."))
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import yaml

from attache_core.json_codec import Json, decode, encode

Dialect = Literal["vllm", "vllm_harmony", "vllm_direct", "openai", "llama_cpp", "sglang", "sglang_harmony"]
"""Whose wire format: vLLM with a chat template, vLLM with gpt-oss, vLLM behind its other front end, OpenAI itself,
llama.cpp, SGLang with a chat template, SGLang with gpt-oss."""

SOME_TEXT = "The quick brown fox jumps over the lazy dog."
"""What the model says when a script cares only for how the answer ends: nine deltas."""


@dataclass(frozen=True, slots=True)
class Message:
    """An assistant's message with one text part; its deltas joined are its text."""

    deltas: tuple[str, ...]

    @property
    def text(self) -> str:
        """The whole text."""
        return "".join(self.deltas)


@dataclass(frozen=True, slots=True)
class Reasoning:
    """A reasoning item with one part; its deltas joined are its text."""

    deltas: tuple[str, ...]

    @property
    def text(self) -> str:
        """The whole text."""
        return "".join(self.deltas)


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A call of a function.

    Attributes:
        name: the function's name.
        arguments: the JSON text of the arguments, or whatever else a model may say in its place.
        call_id: None for one of the server's making, which vLLM gives twice: one in the stream, another at its end.
    """

    name: str
    arguments: str
    call_id: str | None = None


Item = Message | Reasoning | FunctionCall


@dataclass(frozen=True, slots=True)
class Failure:
    """How the model fails after it began; a plain request gets `http_status` and the error instead.

    Attributes:
        form: `both` is an `error` event and `response.failed`, as OpenAI does; else only one of them.
    """

    message: str
    code: str
    http_status: int
    form: Literal["both", "error", "failed"]


@dataclass(frozen=True, slots=True)
class Said:
    """What the model says, in no dialect yet.

    Attributes:
        items: in the order of `output`.
        incomplete_reason: why it stopped early, such as `max_output_tokens`; None when it did not.
        failure: what goes wrong after `items`.
        usage: tokens of input and of output; None to count roughly.
    """

    items: tuple[Item, ...] = ()
    incomplete_reason: str | None = None
    failure: Failure | None = None
    usage: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Raw:
    """An HTTP answer byte for byte. Without a `content-length` header it is sent chunked.

    Attributes:
        headers: names in lower case; without a `content-type`, that of the request's `stream` is added.
        chunks: each is one event in the counting of the interruptions.
    """

    status: int
    headers: tuple[tuple[str, str], ...]
    chunks: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Recorded:
    """A recorded answer: the bytes of its events, or its JSON body, whichever was recorded."""

    status: int
    events: tuple[bytes, ...] | None
    body: Json | None


@dataclass(frozen=True, slots=True)
class HttpError:
    """An HTTP error; `body` None is the dialect's own error object with `message`."""

    status: int
    message: str
    body: Json | bytes | None
    headers: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Cut:
    """The answer ends before it is complete: the connection is reset, or closed as if all were well."""

    after_events: int
    how: Literal["reset", "end"]


@dataclass(frozen=True, slots=True)
class Hold:
    """The answer stops until `until` is set, or, when that is None, until the server is told to release it.

    Attributes:
        after_events: how many events go out first; None holds back the response headers too.
    """

    after_events: int | None
    until: asyncio.Event | None


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer of the model.

    Events are counted from the first, `response.created`; a negative count counts from the end, so -1 means all but
    the terminal event. A plain answer is one JSON body: after 0 events is before it, after any other number is in
    the middle of it.

    Attributes:
        dialect: None for that of the server.
        delay_s: seconds before each event, or before a plain body.
    """

    content: Said | Raw | Recorded | HttpError
    dialect: Dialect | None = None
    delay_s: float = 0.0
    interruption: Cut | Hold | None = None


def text(said: str, *, deltas: int | Sequence[str] | None = None) -> Reply:
    """The model says one text; `deltas` is the pieces themselves, or their number, or one for each word."""
    return Reply(Said((Message(_pieces(said, deltas)),)))


def reasoning_then(thought: str, said: str) -> Reply:
    """The model thinks, then says."""
    return says(Reasoning(_pieces(thought, None)), Message(_pieces(said, None)))


def call(name: str, arguments: Mapping[str, object] | str, *, call_id: str | None = None) -> FunctionCall:
    """A function call; a string is the arguments' text itself, valid or not."""
    written = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return FunctionCall(name, written, call_id)


def function_calls(*calls: FunctionCall) -> Reply:
    """The model calls functions, all in one round."""
    return says(*calls)


def says(*items: Item | str) -> Reply:
    """The model says these items in this order; a string is a message."""
    return Reply(Said(tuple(Message(_pieces(item, None)) if isinstance(item, str) else item for item in items)))


def thinks(thought: str) -> Reasoning:
    """A reasoning item, for `says`."""
    return Reasoning(_pieces(thought, None))


def incomplete(reason: str = "max_output_tokens", reply: Reply | None = None) -> Reply:
    """The model stops early. llama.cpp cannot say so: a script that asks it to gets a 500."""
    return _resaid(reply, incomplete_reason=reason)


def stream_error(
    message: str,
    *,
    code: str = "server_error",
    http_status: int = 500,
    form: Literal["both", "error", "failed"] = "both",
    reply: Reply | None = None,
) -> Reply:
    """The model fails after it said `reply` (by default nothing): in the stream, or as an HTTP error when plain."""
    failure = Failure(message, code, http_status, form)
    return _resaid(reply or Reply(Said()), failure=failure)


def with_usage(input_tokens: int, output_tokens: int, reply: Reply) -> Reply:
    """The same reply, with these token counts."""
    return _resaid(reply, usage=(input_tokens, output_tokens))


def in_dialect(dialect: Dialect, reply: Reply) -> Reply:
    """The same reply as another inference server writes it."""
    return replace(reply, dialect=dialect)


def paced(delay_s: float, reply: Reply | None = None) -> Reply:
    """Each event comes `delay_s` seconds after the one before, the first after the headers."""
    return replace(reply or text(SOME_TEXT), delay_s=delay_s)


def held(until: asyncio.Event, reply: Reply | None = None, *, after_events: int | None = None) -> Reply:
    """The answer goes on only when `until` is set; by default not even its headers go out before."""
    return replace(reply or text(SOME_TEXT), interruption=Hold(after_events, until))


def stalls_after(n_events: int | None, reply: Reply | None = None) -> Reply:
    """Nothing comes after `n_events` until the client leaves or `ModelServer.release`; None: no headers either."""
    return replace(reply or text(SOME_TEXT), interruption=Hold(n_events, None))


def dies_after(n_events: int, reply: Reply | None = None) -> Reply:
    """The connection is reset after `n_events`, as when the server crashes; after 0, headers were sent."""
    return replace(reply or text(SOME_TEXT), interruption=Cut(n_events, "reset"))


def ends_without_terminal(reply: Reply | None = None) -> Reply:
    """The stream ends cleanly, but for its terminal event; a plain body is only half of its JSON."""
    return replace(reply or text(SOME_TEXT), interruption=Cut(-1, "end"))


def http_error(
    status: int,
    body: Json | bytes | None = None,
    headers: Mapping[str, str] | None = None,
    *,
    message: str = "The scripted model refuses.",
) -> Reply:
    """An HTTP error; without a body, the dialect's error object with `message`."""
    return Reply(HttpError(status, message, body, tuple((headers or {}).items())))


def garbage(data: bytes = b"\x00\xff not an answer {") -> Reply:
    """Status 200, the content type that was asked for, and a body that is nothing of the kind."""
    return raw(200, {}, [data])


def raw(status: int, headers: Mapping[str, str], chunks: Sequence[bytes]) -> Reply:
    """An HTTP answer byte for byte; see `Raw`."""
    return Reply(Raw(status, tuple(headers.items()), tuple(chunks)))


def replay(recording: Path | str | Sequence[str], turn: int = 0) -> Reply:
    """A recorded answer: the file of a recording and which of its turns, or the lines of an event stream.

    A file is YAML or JSON: a `turns` list, or one exchange, each with `response.sse` (lines) or `response.body`, or
    `sse` at the top. A plain request for a recorded stream gets the final response of the stream; a stream of a
    recorded JSON body cannot be made up: 500.
    """
    if not isinstance(recording, str | Path):
        return Reply(Recorded(200, _events(recording), None))
    document = yaml.safe_load(Path(recording).read_text())
    exchange = document.get("turns", [document])[turn]
    response: Json = exchange.get("response", exchange)
    lines = response.get("sse")
    return Reply(Recorded(response.get("status_code", 200), _events(lines) if lines else None, response.get("body")))


def final_response(events: Sequence[bytes]) -> Json | None:
    """The `response` of the last event that has one, or None."""
    for event in reversed(events):
        data = event.partition(b"data: ")[2].strip()
        if data.startswith(b"{") and isinstance(response := decode(data).get("response"), dict):
            return response
    return None


def sse_event(payload: Json) -> bytes:
    """One event as inference servers write it: an `event:` line, a `data:` line, an empty line."""
    return b"event: %b\ndata: %b\n\n" % (payload["type"].encode(), encode(payload))


def _events(lines: Sequence[str]) -> tuple[bytes, ...]:
    """Join recorded lines into events; hand-cut recordings have one `data:` line for each event and no empty lines."""
    if not any(line.strip() == "" for line in lines):
        return tuple(f"{line.rstrip()}\n\n".encode() for line in lines)
    joined = "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)
    return tuple(f"{event}\n\n".encode() for event in joined.split("\n\n") if event.strip())


def _pieces(said: str, deltas: int | Sequence[str] | None) -> tuple[str, ...]:
    if deltas is None:
        return tuple(re.findall(r"\s*\S+|\s+$", said))
    if isinstance(deltas, int):
        size = max(1, -(-len(said) // deltas))
        return tuple(said[start : start + size] for start in range(0, len(said), size))
    if "".join(deltas) != said:
        raise ValueError("the deltas of a text must join to the text")
    return tuple(deltas)


def _resaid(
    reply: Reply | None,
    *,
    incomplete_reason: str | None = None,
    failure: Failure | None = None,
    usage: tuple[int, int] | None = None,
) -> Reply:
    reply = reply or text(SOME_TEXT)
    said = reply.content
    if not isinstance(said, Said):
        raise TypeError("only what the model says can be incomplete, fail or count tokens")
    changed = Said(
        said.items, incomplete_reason or said.incomplete_reason, failure or said.failure, usage or said.usage
    )
    return replace(reply, content=changed)
