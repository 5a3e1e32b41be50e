"""A Chat Completions answer as what the model said: `message` and `delta` become items of the Responses API.

Reasoning (`reasoning_content`, or `reasoning` as newer servers call it) is an item of its own, the text and refusal are
a message, each tool call is a function call. Knows the first choice; is unaware of the request. Invariants:

- An item that was left for another is not gone back to: more reasoning after text is a new item.
- The answer is complete when the server gave a `finish_reason` that says so. Its end is read at `[DONE]`, or where the
  stream ends, because the usage comes after the reason.
- Streamed or not, the same code reads the same fields, so the items are the same.

Source: API reference, "The chat completion object" and "The chat completion chunk object"; the reasoning fields from
the documentation of vLLM, SGLang, llama.cpp and DeepSeek.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Final

from attache_core.errors import AttacheError
from attache_core.events.accumulator import CUT_OFF
from attache_core.events.answer_json import answer_object
from attache_core.events.chat_completions.calls import ChatCalls
from attache_core.events.chat_completions.fields import list_of, not_an_answer, object_of, text_of
from attache_core.events.chat_completions.http_error import response_error
from attache_core.events.chat_completions.logprobs import content_tokens
from attache_core.events.chat_completions.usage import response_usage
from attache_core.events.delta_run import DeltaRun
from attache_core.events.dialects.http_error import stream_error
from attache_core.events.items import ITEM_OF_DELTA
from attache_core.events.model_events import AnnotationAdded, Delta, DeltaKind, Finished, ItemAdded, Started
from attache_core.events.text_done import SaidEvent
from attache_core.json_codec import Json

MAX_HELD_TOKENS = 32
"""How many log probabilities wait for text: a character may take a few tokens, which come without any."""

_COMPLETED: Final = frozenset({"stop", "tool_calls", "function_call"})
_INCOMPLETE: Final = {"length": "max_output_tokens", "content_filter": "content_filter"}


class ChatCompletionsReader:
    """The reader of one answer; stateful."""

    def __init__(self) -> None:
        self._started = False
        self._ended = False
        self._calls = ChatCalls()
        self._item: str | None = None
        """The type of the text item that is being said; None when the next text begins one."""
        self._items = 0
        self._kind: DeltaKind | None = None
        self._part = 0
        self._tokens: deque[Json] = deque(maxlen=MAX_HELD_TOKENS)
        self._usage: object = None
        self._finish_reason: str | None = None

    def read_data(self, data: bytes) -> Iterable[SaidEvent]:
        """What the data of one server-sent event says.

        Raises:
            UpstreamError: it is not a chunk of a chat completion.
        """
        return self.close() if data == b"[DONE]" else self.read(answer_object(data))

    def read_run(self, run: DeltaRun) -> Iterable[SaidEvent]:
        """What a run of the Responses API's deltas says. Raises UpstreamError: they are no chunks."""
        return [said for event in run.events() for said in self.read(event.data)]

    def read_response(self, body: Json) -> Iterable[SaidEvent]:
        """What a complete JSON answer says.

        Raises:
            UpstreamError: it is not a chat completion with a choice.
        """
        if not body.get("choices") and not _is_error(body):
            raise not_an_answer()
        return [*self.read(body), *self.close()]

    def error(self, status: int, headers: Mapping[str, str], body: bytes) -> AttacheError:
        """What an HTTP error answer says. `headers` have lower-case names; `body` may be cut off."""
        return response_error(status, headers, body)

    def read(self, payload: Json) -> list[SaidEvent]:
        """What one chunk says, or a whole completion.

        Raises:
            UpstreamError: it is neither.
        """
        if _is_error(payload):
            return self._failed(payload)
        if "choices" not in payload and "usage" not in payload:
            raise not_an_answer()
        said: list[SaidEvent] = []
        if not self._started:
            self._started = True
            said.append(Started(payload))
        for place, value in enumerate(list_of(payload.get("choices"))):
            choice = object_of(value)
            index = choice.get("index")
            if (place if index is None else index) == 0:
                self._read_choice(choice, said)
        self._usage = payload.get("usage") or self._usage
        return said

    def close(self) -> list[SaidEvent]:
        """The answer ended: how, and what of it is still owed. Empty from the second call on."""
        if self._ended:
            return []
        self._ended = True
        return [*self._calls.end(complete=self._finish_reason in _COMPLETED), self._finished()]

    def _read_choice(self, choice: Json, said: list[SaidEvent]) -> None:
        whole = choice.get("message") is not None
        delta = object_of(choice.get("message" if whole else "delta"))
        tokens = content_tokens(choice.get("logprobs"))
        if reasoning := text_of(delta.get("reasoning_content")) or text_of(delta.get("reasoning")):
            said += self._say("reasoning_text", reasoning)
        if content := text_of(delta.get("content")):
            said += self._say("text", content, tokens)
        elif tokens and not reasoning:
            self._tokens.extend(tokens)
        if refusal := text_of(delta.get("refusal")):
            said += self._say("refusal", refusal)
        for annotation in list_of(delta.get("annotations")):
            said += self._cite(object_of(annotation))
        if calls := delta.get("tool_calls") or _former_call(delta):
            self._take_calls(self._calls.read(calls, whole=whole), said)
        if reason := text_of(choice.get("finish_reason")):
            self._finish_reason = reason

    def _say(self, kind: DeltaKind, text: str, tokens: Iterable[Json] = ()) -> list[SaidEvent]:
        left = self._at(kind)
        extra: Json = {}
        if tokens or (self._tokens and kind == "text"):
            extra = {"logprobs": [*self._tokens, *tokens]}
            self._tokens.clear()
        return [*left, Delta(f"text_{self._items}", self._part, kind, text, extra)]

    def _at(self, kind: DeltaKind) -> list[SaidEvent]:
        """Go to the item and the part that text of this kind belongs to."""
        left: list[SaidEvent] = []
        if self._item is None or self._calls.waits:
            self._take_calls(self._calls.leave(), left)
        if kind != self._kind or self._item is None:
            item = ITEM_OF_DELTA[kind]
            if item == self._item:
                self._part += 1
            else:
                self._items, self._item, self._part = self._items + 1, item, 0
            self._kind = kind
        return left

    def _take_calls(self, events: list[SaidEvent], said: list[SaidEvent]) -> None:
        """A call that begins ends the text before it."""
        if any(isinstance(event, ItemAdded) for event in events):
            self._item = None
        said += events

    def _cite(self, annotation: Json) -> list[SaidEvent]:
        """A citation; of other kinds of annotation the Chat Completions API has none."""
        cited = annotation.get("url_citation")
        if not isinstance(cited, dict):
            return []
        numbers = {name: cited[name] if type(cited.get(name)) is int else 0 for name in ("start_index", "end_index")}
        texts = {name: str(cited.get(name) or "") for name in ("title", "url")}
        left = self._at("text")
        citation = {"type": "url_citation", **numbers, **texts}
        return [*left, AnnotationAdded(f"text_{self._items}", self._part, citation)]

    def _failed(self, payload: Json) -> list[SaidEvent]:
        """An error of the server in the place of a chunk, or of an answer: the outcome, whatever the HTTP status."""
        self._ended = True
        given = payload.get("error") or payload
        return [Finished("failed", error=stream_error(given if isinstance(given, dict) else {"message": given}))]

    def _finished(self) -> Finished:
        usage, reason = response_usage(self._usage), self._finish_reason
        if reason in _COMPLETED:
            return Finished("completed", usage=usage)
        if reason in _INCOMPLETE:
            return Finished("incomplete", usage=usage, incomplete_details={"reason": _INCOMPLETE[reason]})
        if reason is None:
            return Finished("failed", usage=usage, error=CUT_OFF)
        message = f"The inference server stopped for a reason that is not known here: {reason[:64]!r}."
        return Finished("failed", usage=usage, error=stream_error({"message": message}))


def _is_error(payload: Json) -> bool:
    """`{"error": …}`, or, as SGLang and older vLLM say it, `{"object": "error", "message": …}`."""
    return bool(payload.get("error")) or payload.get("object") == "error"


def _former_call(delta: Json) -> list[object]:
    """The one call of servers that still speak of `function_call`."""
    call = delta.get("function_call")
    return [] if call is None else [{"index": 0, "function": call}]
