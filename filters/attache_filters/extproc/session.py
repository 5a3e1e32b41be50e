"""One ext_proc stream as a state machine: what Envoy may say next, and what we may answer. It moves no bytes.

`receive` takes one message of Envoy's and returns what it means as plain events; every other method builds the messages
that say one thing to Envoy, or raises `LocalProtocolError` where that would be illegal. Messages must be sent in the
order in which they were built. The machine knows no transport, no clock and no task. The rules are Envoy's for both
bodies in `FULL_DUPLEX_STREAMED` with trailers sent, measured on a real Envoy:

* headers are answered first, then body in pieces, then the end: one end of stream, or, where Envoy sent trailers, the
  answer to them;
* the answer to headers may be held until the whole body was read; the answer to a request is decided once;
* what has no body (a GET, a 204) gets one only together with its headers, whole;
* a reply of our own is an immediate response when its body is known, a streamed one otherwise, and the latter only
  while the request is held; once a response came to us, from wherever, it is rewritten instead;
* a response may come without a request, or while the request is still held: another filter's reply walks through;
* a last body message may come twice; everything after the first end of stream is ignored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto

from attache_filters.extproc import messages
from attache_filters.extproc.headers import INTERNAL_PREFIX
from attache_filters.extproc.wire import ext_proc_pb2 as pb

Messages = list[pb.ProcessingResponse]


class ProtocolError(Exception):
    """The rules of an ext_proc stream were broken; the stream cannot go on."""


class LocalProtocolError(ProtocolError):
    """We asked for an answer that is not legal in this state."""


class RemoteProtocolError(ProtocolError):
    """Envoy sent what it may not send in this state, or is configured in a way that we do not speak."""


@dataclass(frozen=True, slots=True)
class RequestHeaders:
    """The request began. `headers` are without pseudo-headers, names in lower case."""

    method: str
    path: str
    authority: str
    headers: dict[str, str]


@dataclass(frozen=True, slots=True)
class RequestBody:
    """Some of the request's body; never empty."""

    data: bytes


@dataclass(frozen=True, slots=True)
class RequestEnd:
    """The request has been read whole. Comes once, also for a request without a body."""


@dataclass(frozen=True, slots=True)
class ResponseHeaders:
    """A response began: the upstream's, or the local reply of Envoy or of another filter."""

    status: int
    headers: dict[str, str]


@dataclass(frozen=True, slots=True)
class ResponseBody:
    """Some of the response's body; never empty."""

    data: bytes


@dataclass(frozen=True, slots=True)
class ResponseEnd:
    """The response has been read whole."""


SessionEvent = RequestHeaders | RequestBody | RequestEnd | ResponseHeaders | ResponseBody | ResponseEnd


class Incoming(Enum):
    """How much of one direction Envoy has sent."""

    NOTHING = auto()
    BODY = auto()
    DONE = auto()


class Answer(Enum):
    """How far our answer is."""

    UNDECIDED = auto()
    CONTINUED = auto()
    """The request went on; its response will come."""
    RESPONDING = auto()
    """The headers of the response that came were answered."""
    REPLYING = auto()
    """A streamed reply of our own is under way."""
    DONE = auto()


class Kind(Enum):
    """What one message of Envoy's is, in one direction."""

    HEADERS = auto()
    HEADERS_END = auto()
    BODY = auto()
    BODY_END = auto()
    TRAILERS = auto()


INCOMING: Mapping[tuple[Incoming, Kind], Incoming] = {
    (Incoming.NOTHING, Kind.HEADERS): Incoming.BODY,
    (Incoming.NOTHING, Kind.HEADERS_END): Incoming.DONE,
    (Incoming.BODY, Kind.BODY): Incoming.BODY,
    (Incoming.BODY, Kind.BODY_END): Incoming.DONE,
    (Incoming.BODY, Kind.TRAILERS): Incoming.DONE,
    (Incoming.DONE, Kind.BODY): Incoming.DONE,
    (Incoming.DONE, Kind.BODY_END): Incoming.DONE,
}
"""What follows on what Envoy sends, in each direction; what is missing is illegal."""


@dataclass(slots=True)
class _Direction:
    """What Envoy has sent of the request, or of the response."""

    state: Incoming = Incoming.NOTHING
    fields: Mapping[str, str] = field(default_factory=dict)
    bodiless: bool = False
    trailers: bool = False
    """Whether Envoy sent trailers and waits for their answer."""

    def advance(self, kind: Kind) -> bool:
        """Take one message; False when it says nothing new. Raises KeyError when it is illegal."""
        before = self.state
        self.state = INCOMING[before, kind]
        self.trailers = self.trailers or kind is Kind.TRAILERS
        self.bodiless = self.bodiless or kind is Kind.HEADERS_END
        return before is not Incoming.DONE


class Session:
    """The state of one ext_proc stream. See the module docstring for the rules."""

    def __init__(self) -> None:
        self._request = _Direction()
        self._response = _Direction()
        self._answer = Answer.UNDECIDED
        self._late: tuple[messages.HeaderChanges, bytearray] | None = None
        """Changed headers of a response that came without a body, and the body that it gets, until that is whole."""

    @property
    def answer(self) -> Answer:
        """How far our answer is."""
        return self._answer

    @property
    def response_came(self) -> bool:
        """Whether Envoy sent us the headers of a response."""
        return self._response.state is not Incoming.NOTHING

    @property
    def request_held(self) -> bool:
        """Whether a request is held whose answer is still open in every way."""
        seen = self._request.state is not Incoming.NOTHING
        return seen and self._answer is Answer.UNDECIDED and not self.response_came

    @property
    def phase(self) -> str:
        """Where the exchange is, in words for errors and logs."""
        match self._answer:
            case Answer.UNDECIDED:
                return "the request was read" if self._request.state is not Incoming.DONE else "the request was held"
            case Answer.CONTINUED:
                return "a response was awaited"
            case Answer.DONE:
                return "everything was answered"
            case _:
                return "the response was sent"

    def receive(self, message: pb.ProcessingRequest) -> list[SessionEvent]:
        """What one message of Envoy's means.

        Raises:
            RemoteProtocolError: it is not legal now, or shows processing modes other than ours.
        """
        _check_modes(message)
        kind = message.WhichOneof("request")
        match kind:
            case "request_headers":
                return self._receive_request_headers(message.request_headers)
            case "response_headers":
                return self._receive_response_headers(message.response_headers)
            case "request_body":
                return list(self._receive_body(self._request, message.request_body, RequestBody, RequestEnd()))
            case "response_body":
                return list(self._receive_body(self._response, message.response_body, ResponseBody, ResponseEnd()))
            case "request_trailers":
                self._advance(self._request, Kind.TRAILERS, kind)
                return [RequestEnd()]
            case "response_trailers":
                self._advance(self._response, Kind.TRAILERS, kind)
                return [ResponseEnd()]
            case _:
                raise RemoteProtocolError("Envoy sent a message of a kind that this server does not know.")

    def continue_request(self, *, path: str, headers: Mapping[str, str], body: bytes) -> Messages:
        """Let the held request go on, rewritten. Its whole body must have been read.

        `content-length` is the body's, whatever `headers` say, or gone where trailers follow. Envoy passes it on only
        where the ext_proc filter has `allow_content_length_header` (known from 1.39 on), and sends chunks otherwise.
        """
        if not self.request_held or self._request.state is not Incoming.DONE:
            raise LocalProtocolError(f"A request cannot go on: {self.phase}.")
        self._answer = Answer.CONTINUED
        old = self._request.fields
        kept = {name: value for name, value in headers.items() if name != "content-length"}
        changes = messages.header_changes(old, {**kept, ":path": path})
        rerouted = any(_may_choose_route(name) for name in changes.set)
        if (body or not self._request.bodiless) and not self._request.trailers:
            changes = messages.with_content_length(changes, len(body))
        if self._request.bodiless and body:
            return [messages.replace_answer("request_headers", changes, body, clear_route_cache=rerouted)]
        built = [messages.headers_answer("request_headers", changes, clear_route_cache=rerouted)]
        if self._request.bodiless:
            return built
        built.extend(messages.body_answers("request_body", body, end=not self._request.trailers))
        if self._request.trailers:
            built.append(pb.ProcessingResponse(request_trailers=pb.TrailersResponse()))
        return built

    def reply(self, status: int, headers: Mapping[str, str], body: bytes) -> Messages:
        """Answer with a whole reply of our own, as long as no response came to us."""
        if self._answer not in (Answer.UNDECIDED, Answer.CONTINUED) or not self._is_unanswered_request():
            raise LocalProtocolError(f"A reply cannot be given: {self.phase}.")
        self._answer = Answer.DONE
        return [messages.immediate_response(status, headers, body)]

    def start_reply(self, status: int, headers: Mapping[str, str]) -> Messages:
        """Begin a streamed reply of our own to the request that is held. Body and end follow."""
        if not self.request_held:
            raise LocalProtocolError(f"A streamed reply cannot be given: {self.phase}.")
        self._answer = Answer.REPLYING
        return [messages.streamed_reply_headers(status, headers)]

    def start_response(self, status: int, headers: Mapping[str, str]) -> Messages:
        """Answer the headers of the response that came, rewritten. Body and end follow."""
        if self._answer not in (Answer.UNDECIDED, Answer.CONTINUED) or not self.response_came:
            raise LocalProtocolError(f"A response cannot begin: {self.phase}.")
        self._answer = Answer.RESPONDING
        changes = messages.header_changes(self._response.fields, {**headers, ":status": str(status)})
        if self._response.bodiless:
            self._late = (changes, bytearray())
            return []
        return [messages.headers_answer("response_headers", changes)]

    def echo_response(self) -> Messages:
        """Answer the headers of the response that came without changing any."""
        fields = self._response.fields
        return self.start_response(int(fields.get(":status", 0)), fields)

    def send_body(self, data: bytes) -> Messages:
        """More body of the response or reply that was begun, of any length."""
        if self._late is not None:
            self._late[1].extend(data)
            return []
        return self._body_messages(data, end=False)

    def end(self, data: bytes = b"") -> Messages:
        """End the response or reply that was begun, with `data` as the last of its body."""
        if self._late is not None:
            self._late[1].extend(data)
            return self._end_late(*self._late)
        if self._response.trailers and self._answer is Answer.RESPONDING:
            built = self._body_messages(data, end=False)
            built.append(pb.ProcessingResponse(response_trailers=pb.TrailersResponse()))
        else:
            built = self._body_messages(data, end=True)
        self._answer = Answer.DONE
        return built

    def _end_late(self, changes: messages.HeaderChanges, body: bytearray) -> Messages:
        self._late = None
        self._answer = Answer.DONE
        if body:
            return [messages.replace_answer("response_headers", changes, bytes(body))]
        return [messages.headers_answer("response_headers", changes)]

    def _body_messages(self, data: bytes, *, end: bool) -> Messages:
        match self._answer:
            case Answer.RESPONDING:
                return list(messages.body_answers("response_body", data, end=end))
            case Answer.REPLYING:
                return list(messages.streamed_reply_body(data, end=end))
            case _:
                raise LocalProtocolError(f"Body cannot be sent: {self.phase}.")

    def _is_unanswered_request(self) -> bool:
        return self._request.state is not Incoming.NOTHING and not self.response_came

    def _receive_request_headers(self, received: pb.HttpHeaders) -> list[SessionEvent]:
        if self.response_came:
            raise RemoteProtocolError("Envoy sent a request after its response.")
        self._advance(self._request, _headers_kind(received), "request_headers")
        fields = messages.read_headers(received.headers)
        self._request.fields = fields
        plain = {name: value for name, value in fields.items() if not name.startswith(":")}
        head = RequestHeaders(fields.get(":method", ""), fields.get(":path", ""), fields.get(":authority", ""), plain)
        return [head, RequestEnd()] if received.end_of_stream else [head]

    def _receive_response_headers(self, received: pb.HttpHeaders) -> list[SessionEvent]:
        fields = messages.read_headers(received.headers)
        status = fields.get(":status", "")
        if not status.isdecimal():
            raise RemoteProtocolError("Envoy sent a response without a status.")
        self._advance(self._response, _headers_kind(received), "response_headers")
        self._response.fields = fields
        plain = {name: value for name, value in fields.items() if not name.startswith(":")}
        head = ResponseHeaders(int(status), plain)
        return [head, ResponseEnd()] if received.end_of_stream else [head]

    def _receive_body(
        self,
        direction: _Direction,
        received: pb.HttpBody,
        event: type[RequestBody] | type[ResponseBody],
        end: SessionEvent,
    ) -> Iterator[SessionEvent]:
        kind = Kind.BODY_END if received.end_of_stream else Kind.BODY
        if not self._advance(direction, kind, event.__name__):
            return
        if received.body:
            yield event(received.body)
        if received.end_of_stream:
            yield end

    @staticmethod
    def _advance(direction: _Direction, kind: Kind, name: str) -> bool:
        try:
            return direction.advance(kind)
        except KeyError:
            raise RemoteProtocolError(f"Envoy sent {name} when it had sent {direction.state.name.lower()}.") from None


def _may_choose_route(name: str) -> bool:
    """Whether Envoy must choose the route anew when this header changes; those that the host itself writes say no."""
    return name not in ("accept", "content-type") and not name.startswith(INTERNAL_PREFIX)


def _headers_kind(received: pb.HttpHeaders) -> Kind:
    return Kind.HEADERS_END if received.end_of_stream else Kind.HEADERS


def _check_modes(message: pb.ProcessingRequest) -> None:
    if message.observability_mode:
        raise RemoteProtocolError("The ext_proc filter must not be in observability_mode.")
    if not message.HasField("protocol_config"):
        return
    modes = message.protocol_config
    if not modes.request_body_mode == modes.response_body_mode == pb.FULL_DUPLEX_STREAMED:
        raise RemoteProtocolError("Both bodies of the ext_proc filter must be FULL_DUPLEX_STREAMED.")
