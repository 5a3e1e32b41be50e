"""The Chat Completions wire, for a server that has no Responses API.

The shape is OpenAI's (API reference, "The chat completion chunk object"); what that has no word for, the reasoning, is
`reasoning_content`, as SGLang, llama.cpp and DeepSeek document it. An answer that is cut short has the `finish_reason`
for it, and one that fails has an `error` in the place of a chunk. The last event holds all that ends a stream: the
reason, the usage where it was asked for, `[DONE]`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Final

from attache_core.json_codec import Json, encode
from attache_core.testing.model_script import FunctionCall, Message, Reasoning, Said
from attache_core.testing.model_wire.wire import DEFAULT_MODEL, new_id, pieces_of

_FINISH_REASONS: Final = {"max_output_tokens": "length", "content_filter": "content_filter"}


class ChatCompletionsWire:
    """One answer to one chat request."""

    def __init__(self, request: Json, said: Said) -> None:
        self._request = request
        self._said = said
        self._call_ids = [(item.call_id or f"call_{new_id()}") for item in said.items if isinstance(item, FunctionCall)]
        self._head: Json = {
            "id": f"chatcmpl-{new_id()}",
            "created": int(time.time()),
            "model": str(request.get("model") or DEFAULT_MODEL),
        }

    def frames(self) -> list[bytes]:
        """The events of the stream as bytes, in order."""
        failure = self._said.failure
        deltas = [{"role": "assistant", "content": ""}, *self._deltas()]
        told = [_frame(self._chunk(delta, None)) for delta in deltas]
        if failure is not None:
            body = self.error_body(failure.http_status, failure.message, failure.code)
            return [*told, _frame(body) + _DONE]
        last = _frame(self._chunk({}, self._finish_reason()))
        if (self._request.get("stream_options") or {}).get("include_usage") is True:
            last += _frame({**self._head, "object": _CHUNK, "choices": [], "usage": self._usage()})
        return [*told, last + _DONE]

    def response(self) -> Json:
        """The whole answer, as a plain request gets it."""
        message: Json = {"role": "assistant", "content": None}
        for delta in self._deltas(whole=True):
            for name, value in delta.items():
                message[name] = (message.get(name) or type(value)()) + value
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": self._finish_reason()}
        return {**self._head, "object": "chat.completion", "choices": [choice], "usage": self._usage()}

    def error_body(self, status: int, message: str, code: str | None = None, param: str | None = None) -> Json:
        """The body of an HTTP error."""
        kind = "invalid_request_error" if status < 500 else "server_error"
        return {"error": {"message": message, "type": kind, "param": param, "code": code}}

    def _deltas(self, *, whole: bool = False) -> Iterator[Json]:
        calls = 0
        for item in self._said.items:
            match item:
                case Message():
                    yield from ({"content": delta} for delta in item.deltas)
                case Reasoning():
                    yield from ({"reasoning_content": delta} for delta in item.deltas)
                case FunctionCall():
                    yield from self._call(item, calls, whole=whole)
                    calls += 1

    def _call(self, item: FunctionCall, index: int, *, whole: bool) -> Iterator[Json]:
        named = {"id": self._call_ids[index], "type": "function"}
        if whole:
            yield {"tool_calls": [{**named, "function": {"name": item.name, "arguments": item.arguments}}]}
            return
        yield {"tool_calls": [{"index": index, **named, "function": {"name": item.name, "arguments": ""}}]}
        for piece in pieces_of(item.arguments):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}

    def _finish_reason(self) -> str:
        if self._said.incomplete_reason:
            return _FINISH_REASONS[self._said.incomplete_reason]
        return "tool_calls" if self._call_ids else "stop"

    def _chunk(self, delta: Json, finish_reason: str | None) -> Json:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        return {**self._head, "object": _CHUNK, "choices": [choice]}

    def _usage(self) -> Json:
        given, said = self._said.usage or (max(1, len(encode(self._request.get("messages"))) // 4), self._tokens())
        thought = sum(len(item.deltas) for item in self._said.items if isinstance(item, Reasoning))
        return {
            "prompt_tokens": given,
            "completion_tokens": said,
            "total_tokens": given + said,
            "prompt_tokens_details": {"cached_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": thought},
        }

    def _tokens(self) -> int:
        return sum(
            len(pieces_of(item.arguments) if isinstance(item, FunctionCall) else item.deltas)
            for item in self._said.items
        )


_CHUNK: Final = "chat.completion.chunk"
_DONE: Final = b"data: [DONE]\n\n"


def _frame(payload: Json) -> bytes:
    return b"data: %b\n\n" % encode(payload)
