"""What all inference servers have in common: the Responses API's events, read tolerantly.

A dialect translates one server's answer into `SaidEvent`s; what those mean together is the accumulator's business.
Knows the wire; is unaware of what was said before, but for which item an event is about. Invariants:

- The ids that a server gives to items are dropped (vLLM's stream and final object differ in them); the public ones are
  the sequencer's.
- Event types that are not the API's are dropped; an event that is not a Responses event at all is an UpstreamError.
- `error` and a failed response are the outcome, whatever the HTTP status was. Only what says everywhere that it is
  complete is: where the end's type and its response disagree, the worse counts.
- What a model writes is text. Tool-call markup in it (`<tool_call>`, `<|channel|>`) is a parser's that the server was
  started without, and is never read here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attache_core.errors import AttacheError, UpstreamError
from attache_core.events.answer_json import answer_object
from attache_core.events.delta_run import DeltaRun
from attache_core.events.dialects.event_types import (
    DELTAS,
    ENVELOPE,
    ITEM_EVENTS,
    PARTS,
    SEVERITY,
    STRAY_FIELDS,
    TERMINAL,
    TEXT_DONES,
)
from attache_core.events.dialects.http_error import error_from_http, stream_error
from attache_core.events.dialects.item_keys import ItemKeys
from attache_core.events.error_codes import BAD_ANSWER
from attache_core.events.event import Event
from attache_core.events.items import CALL_TEXT, PART_KINDS
from attache_core.events.model_events import (
    AnnotationAdded,
    Delta,
    DeltaKind,
    Finished,
    ItemAdded,
    ItemDone,
    ItemEvent,
    PartAdded,
    PartDone,
    Started,
    Status,
)
from attache_core.events.text_done import SaidEvent, TextDone
from attache_core.json_codec import Json
from attache_core.types.usage import full_usage


class Dialect:
    """The reader of one upstream answer; stateful. The base class reads what needs no exception."""

    def __init__(self) -> None:
        self._keys = ItemKeys()

    def read(self, payload: Json) -> Iterable[SaidEvent]:
        """What one payload of the event stream says.

        Raises:
            UpstreamError: it is not an event of the Responses API.
        """
        kind = payload.get("type")
        delta = DELTAS.get(kind) if isinstance(kind, str) else None
        if delta is None:
            return self._read_rarer(kind, payload)
        return self._delta(self._key(payload), delta[0], _number(payload, delta[1]), payload)

    def read_data(self, data: bytes) -> Iterable[SaidEvent]:
        """What the data of one server-sent event says; `[DONE]` says nothing.

        Raises:
            UpstreamError: it is not an event of the Responses API.
        """
        return () if data == b"[DONE]" else self.read(answer_object(data))

    def read_event(self, event: Event) -> Iterable[SaidEvent]:
        """What a canonical event says, which may be a run.

        Raises:
            UpstreamError: it is not an event of the Responses API.
        """
        return self.read_run(event) if isinstance(event, DeltaRun) else self.read(event.data)

    def read_run(self, run: DeltaRun) -> Iterable[SaidEvent]:
        """What these deltas say: the same as one by one, together."""
        kind, index = DELTAS[run.type]
        pieces = [text for text in run.texts if text]
        key, part, whole = self._key(run.data), _number(run.data, index), run.data["delta"]
        return (Delta(key, part, kind, whole, pieces=pieces if len(pieces) > 1 else ()),)

    def read_response(self, body: Json) -> Iterable[SaidEvent]:
        """What a complete JSON answer says.

        Raises:
            UpstreamError: it is not a response object.
        """
        status = body.get("status")
        if isinstance(status, str) and status in SEVERITY and isinstance(body.get("output"), list):
            return [Started(body), *self._whole_output(body), self._finished(body, status)]
        return self._untyped(body)

    def close(self) -> Iterable[SaidEvent]:
        """What the end of a stream says beside that it ended: nothing, for a server of this API says how it ended."""
        return ()

    def error(self, status: int, headers: Mapping[str, str], body: bytes) -> AttacheError:
        """What an HTTP error answer says. `headers` have lower-case names; `body` may be cut off."""
        return error_from_http(status, headers, body)

    def _read_rarer(self, kind: object, payload: Json) -> Iterable[SaidEvent]:
        if not isinstance(kind, str) or payload.get("object") == "error":
            return self._untyped(payload)
        match kind:
            case "response.created" | "response.in_progress" | "response.queued":
                return (Started(_child(payload, "response")),)
            case "response.output_item.added":
                return (self._item_added(payload),)
            case "response.output_item.done":
                return (self._item_done(payload),)
            case "response.output_text.annotation.added":
                part = _number(payload, "content_index") or 0
                return (AnnotationAdded(self._key(payload), part, _child(payload, "annotation")),)
            case "error":
                return (_failed(payload),)
        if kind in TEXT_DONES:
            return self._text_done(payload, *TEXT_DONES[kind])
        if kind in TERMINAL:
            return self._terminal(_child(payload, "response"), TERMINAL[kind])
        if kind in ITEM_EVENTS:
            return (ItemEvent(self._key(payload), kind, _own_fields(payload)),)
        return self._part(kind, payload)

    def _untyped(self, payload: Json) -> Iterable[SaidEvent]:
        if isinstance(payload.get("error"), (dict, str)) or payload.get("object") == "error":
            return (_failed(payload),)
        raise _not_an_answer()

    # What a dialect may see differently

    def _delta(self, key: str, kind: DeltaKind, part: int | None, payload: Json) -> Iterable[SaidEvent]:
        text, logprobs = payload.get("delta"), payload.get("logprobs")
        if not isinstance(text, str):
            raise _not_an_answer()
        if logprobs and isinstance(logprobs, list):
            return (Delta(key, part, kind, text, {"logprobs": logprobs}),)
        return (Delta(key, part, kind, text),)

    def _clean(self, item: Json) -> Json:
        """The item without what is not its own."""
        return {name: value for name, value in item.items() if name not in STRAY_FIELDS}

    def _usage(self, given: Json | None) -> Json | None:
        return full_usage(given)

    def _end(self, finished: Finished) -> Iterable[SaidEvent]:
        return (finished,)

    # Items

    def _key(self, payload: Json) -> str:
        item_id, index = payload.get("item_id"), payload.get("output_index")
        return self._keys.of(
            index if type(index) is int else None, item_id if type(item_id) is str and item_id else None
        )

    def _item_added(self, payload: Json) -> SaidEvent:
        item = _item(payload.get("item"))
        key = self._keys.begun(_number(payload, "output_index", None), _ids(item, payload), item["type"])
        return ItemAdded(key, self._clean(item))

    def _item_done(self, payload: Json) -> SaidEvent:
        item = _item(payload.get("item"))
        index = _number(payload, "output_index", None)
        if index is None:
            index = _number(item, "output_index", None)
        return ItemDone(self._keys.ended(index, _ids(item, payload), item["type"]), self._clean(item))

    def _whole_output(self, response: Json) -> list[SaidEvent]:
        given = response.get("output")
        output = [_item(item) for item in given] if isinstance(given, list) else []
        return [
            ItemDone(self._keys.whole(index, _ids(item, {}), item["type"]), self._clean(item))
            for index, item in enumerate(output)
        ]

    # Texts and parts

    def _text_done(self, payload: Json, kind: DeltaKind, index: str | None, name: str) -> Iterable[SaidEvent]:
        text = payload.get(name)
        if not isinstance(text, str):
            return ()
        called = payload.get("name")
        return (
            TextDone(
                self._key(payload), _number(payload, index), kind, text, called if isinstance(called, str) else None
            ),
        )

    def _part(self, kind: str, payload: Json) -> Iterable[SaidEvent]:
        prefix, dot, event = kind.rpartition(".")
        index = PARTS.get(prefix + dot)
        body = payload.get("part")
        part_kind = PART_KINDS.get(str(body.get("type"))) if isinstance(body, dict) else None
        if index is None or part_kind is None or event not in ("added", "done"):
            return ()
        part = _number(payload, index) or 0
        key = self._key(payload)
        return (
            (PartAdded(key, part, part_kind),) if event == "added" else (PartDone(key, part, _child(payload, "part")),)
        )

    # The end

    def _terminal(self, response: Json, status: Status) -> Iterable[SaidEvent]:
        # The final object repeats the items under other ids and with other white space; it counts where there was no
        # stream of them. Some servers stream no calls, and name them here alone.
        finished = self._finished(response, status)
        whole = self._whole_output(response) if self._keys.empty else self._late_calls(response, finished.status)
        return [*whole, *self._end(finished)]

    def _late_calls(self, response: Json, status: Status) -> list[SaidEvent]:
        if status != "completed" or not self._keys.types.isdisjoint((*CALL_TEXT, None)):
            return []
        return [
            said
            for said in self._whole_output(response)
            if isinstance(said, ItemDone) and said.item["type"] in CALL_TEXT
        ]

    def _finished(self, response: Json, status: Status) -> Finished:
        # vLLM sends `response.completed` around a response that says that it is not.
        status = max(status, _status(response.get("status"), status), key=SEVERITY.__getitem__)
        error, details = response.get("error"), response.get("incomplete_details")
        return Finished(
            status,
            usage=self._usage(response.get("usage")),
            error=stream_error(error if isinstance(error, dict) else {}) if status == "failed" else None,
            incomplete_details=details if status == "incomplete" and isinstance(details, dict) else None,
        )


def _status(said: object, default: Status) -> Status:
    """What a final response's own status comes to: one that is no end is a failure."""
    if said is None:
        return default
    return TERMINAL.get(f"response.{said}", "failed")


def _failed(payload: Json) -> Finished:
    given = payload.get("error")
    return Finished("failed", error=stream_error(given if isinstance(given, dict) else {"message": given, **payload}))


def _item(value: object) -> Json:
    if not isinstance(value, dict) or not isinstance(value.get("type"), str):
        raise _not_an_answer()
    return value


def _ids(item: Json, payload: Json) -> list[str]:
    """The names of an item, its own id first; `call_id` only where there is no other."""
    given = [item.get("id"), item.get("item_id"), payload.get("item_id")]
    ids = [name for name in given if isinstance(name, str) and name]
    call_id = item.get("call_id")
    return ids or ([call_id] if isinstance(call_id, str) and call_id else [])


def _own_fields(payload: Json) -> Json:
    return {name: value for name, value in payload.items() if name not in ENVELOPE}


def _number(payload: Json, field: str | None, default: int | None = 0) -> int | None:
    if field is None:
        return None
    value = payload.get(field)
    return value if type(value) is int else default


def _child(payload: Json, name: str) -> Json:
    value = payload.get(name)
    if not isinstance(value, dict):
        raise _not_an_answer()
    return value


def _not_an_answer() -> UpstreamError:
    return UpstreamError("The inference server sent what is not an answer of the Responses API.", code=BAD_ANSWER)
