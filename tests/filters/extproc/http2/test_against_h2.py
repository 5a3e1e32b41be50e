"""Conversations with the `h2` library, which refuses whatever a server may not do.

Hypothesis writes them: requests and bodies in any interleaving, windows of any size that change under way, resets from
either side, and a wire that delivers any number of bytes at any time. In the end both sides have what the other sent,
and agree on every window.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived as ClientDataReceived
from h2.events import Event, ResponseReceived, SettingsAcknowledged, StreamEnded
from h2.events import StreamReset as ClientStreamReset
from h2.settings import SettingCodes
from hypothesis import given, settings
from hypothesis import strategies as st

from attache_filters.extproc.http2 import (
    DataReceived,
    ErrorCode,
    HeaderList,
    Http2Connection,
    Http2Event,
    Http2Limits,
    RequestReceived,
    StreamReset,
)
from filters.extproc.http2.raw_client import OK, POST, TRAILERS

CONNECTION_WINDOW = 200_000
STREAM_WINDOW = 50_000
MAX_STREAMS = 20
LIMITS = Http2Limits(
    max_concurrent_streams=MAX_STREAMS,
    stream_window_bytes=STREAM_WINDOW,
    connection_window_bytes=CONNECTION_WINDOW,
    max_header_list_bytes=200_000,
    max_header_block_bytes=200_000,
)
SEGMENT = ((b"x-segment", b"main"),)


@dataclass
class Exchange:
    """What one stream carried so far, as each side knows it."""

    request: HeaderList
    sent: bytearray = field(default_factory=bytearray)
    received: bytearray = field(default_factory=bytearray)
    answer_sent: bytearray = field(default_factory=bytearray)
    answer_received: bytearray = field(default_factory=bytearray)
    unconsumed: int = 0
    unacknowledged: int = 0
    reported: bool = False
    request_ended: bool = False
    request_end_seen: bool = False
    answered: bool = False
    answer_ended: bool = False
    answer_end_seen: bool = False
    client_gone: bool = False
    client_reset: bool = False
    reset: bool = False

    @property
    def client_may_send(self) -> bool:
        return not (self.request_ended or self.client_gone)

    @property
    def server_may_send(self) -> bool:
        return self.reported and not (self.answer_ended or self.reset)


class Conversation:
    """A client, a server, and the two directions of a wire between them."""

    def __init__(self) -> None:
        self.client = H2Connection(H2Configuration(client_side=True, header_encoding=None))
        self.server = Http2Connection(LIMITS)
        self.to_server = bytearray()
        self.to_client = bytearray()
        self.exchanges: dict[int, Exchange] = {}
        self.acknowledged = False
        self.client.initiate_connection()

    def play(self, step: tuple[str, int, int]) -> None:
        """Do one step, if it is legal now: what, on which of the streams, and how much."""
        name, which, size = step
        exchanges = list(self.exchanges.items())
        if name in ("open", "deliver_to_server", "deliver_to_client", "resize", "ping"):
            getattr(self, name)(which, size)
        elif exchanges:
            getattr(self, name)(*exchanges[which % len(exchanges)], size)

    def open(self, which: int, size: int) -> None:
        if self.client.open_outbound_streams >= min(MAX_STREAMS, self.client.remote_settings.max_concurrent_streams):
            return
        long = ((b"x-long", bytes(33 + which * n % 90 for n in range(size))),) if which % 4 == 0 else ()
        fields = (*POST, *SEGMENT, (b"x-number", b"%d" % (which % 3)), *long)
        stream_id = self.client.get_next_available_stream_id()
        end = which % 5 == 0
        weight = 16 if which % 2 else None
        self.client.send_headers(stream_id, fields, end_stream=end, priority_weight=weight)
        self.exchanges[stream_id] = Exchange(fields, request_ended=end)

    def client_sends(self, stream_id: int, exchange: Exchange, size: int) -> None:
        if not exchange.client_may_send:
            return
        padding = size % 40 if size % 3 == 0 else None
        overhead = 0 if padding is None else padding + 1
        room = min(self.client.local_flow_control_window(stream_id), self.client.max_outbound_frame_size) - overhead
        data = _body(stream_id, size)[: max(room, 0)]
        if len(data) + overhead > max(room + overhead, 0):
            return
        exchange.request_ended = size % 7 == 0
        self.client.send_data(stream_id, data, end_stream=exchange.request_ended, pad_length=padding)
        exchange.sent += data

    def client_ends(self, stream_id: int, exchange: Exchange, size: int) -> None:
        if exchange.client_may_send:
            exchange.request_ended = True
            if size % 2:
                self.client.send_headers(stream_id, SEGMENT, end_stream=True)
            else:
                self.client.end_stream(stream_id)

    def client_resets(self, stream_id: int, exchange: Exchange, _: int) -> None:
        if not exchange.client_gone and not (exchange.request_ended and exchange.answer_end_seen):
            exchange.client_gone = exchange.client_reset = True
            self.client.reset_stream(stream_id, ErrorCode.CANCEL)

    def client_acknowledges(self, stream_id: int, exchange: Exchange, size: int) -> None:
        taken = min(size, exchange.unacknowledged)
        exchange.unacknowledged -= taken
        if taken:
            self.client.acknowledge_received_data(taken, stream_id)

    def resize(self, _: int, size: int) -> None:
        # h2 takes the acknowledgement of its first SETTINGS for that of the second, if it has sent two.
        if self.acknowledged:
            self.client.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: size * 3})

    def ping(self, _: int, size: int) -> None:
        self.client.ping(size.to_bytes(8, "big"))

    def server_answers(self, stream_id: int, exchange: Exchange, _: int) -> None:
        if exchange.server_may_send and not exchange.answered:
            exchange.answered = True
            self.server.send_headers(stream_id, OK)

    def server_sends(self, stream_id: int, exchange: Exchange, size: int) -> None:
        if exchange.server_may_send and exchange.answered:
            # h2 takes an empty frame for an overrun while a window is negative: 6.9.1 allows it.
            data = _body(stream_id + 1, 2 * size + 1)
            exchange.answer_sent += data
            exchange.answer_ended = size % 11 == 0
            self.server.send_data(stream_id, data, end_stream=exchange.answer_ended)

    def server_ends(self, stream_id: int, exchange: Exchange, _: int) -> None:
        if exchange.server_may_send:
            exchange.answer_ended = True
            self.server.send_headers(stream_id, TRAILERS if exchange.answered else OK, end_stream=True)

    def server_resets(self, stream_id: int, exchange: Exchange, _: int) -> None:
        if exchange.reported and not exchange.reset:
            exchange.reset = True
            self.server.reset(stream_id, ErrorCode.CANCEL)

    def server_consumes(self, stream_id: int, exchange: Exchange, size: int) -> None:
        taken = min(size, exchange.unconsumed)
        exchange.unconsumed -= taken
        self.server.consume(stream_id, taken)

    def deliver_to_server(self, _: int, size: int) -> None:
        self.to_server += self.client.data_to_send()
        for event in self.server.receive(bytes(self.to_server[:size])):
            self._on_server(event)
        del self.to_server[:size]

    def deliver_to_client(self, _: int, size: int) -> None:
        self.to_client += self.server.take_output()
        for event in self.client.receive_data(bytes(self.to_client[:size])):
            self._on_client(event)
        del self.to_client[:size]

    def _on_server(self, event: Http2Event) -> None:
        if isinstance(event, RequestReceived):
            exchange = self.exchanges[event.stream_id]
            assert (event.headers, exchange.reported) == (exchange.request, False)
            exchange.reported = True
            exchange.request_end_seen = event.end_stream
        elif isinstance(event, DataReceived):
            exchange = self.exchanges[event.stream_id]
            assert not exchange.request_end_seen
            exchange.received += event.data
            exchange.unconsumed += len(event.data)
            exchange.request_end_seen = event.end_stream
        elif isinstance(event, StreamReset):
            self.exchanges[event.stream_id].reset = True
        else:
            assert type(event).__name__ == "Unblocked"

    def _on_client(self, event: Event) -> None:
        if isinstance(event, ResponseReceived):
            assert tuple(event.headers) == OK
        elif isinstance(event, ClientDataReceived):
            exchange = self.exchanges[event.stream_id]
            exchange.answer_received += event.data
            exchange.unacknowledged += event.flow_controlled_length
        elif isinstance(event, StreamEnded):
            self.exchanges[event.stream_id].answer_end_seen = True
        elif isinstance(event, ClientStreamReset):
            self.exchanges[event.stream_id].client_gone = True
        elif isinstance(event, SettingsAcknowledged):
            self.acknowledged = True

    def finish(self) -> None:
        """End everything that is open, and deliver until nothing moves."""
        self._settle()
        for stream_id, exchange in self.exchanges.items():
            self.client_ends(stream_id, exchange, 0)
            self.server_ends(stream_id, exchange, 0)
        self._settle()

    def _settle(self) -> None:
        self.deliver_to_server(0, 1 << 30)
        self.deliver_to_client(0, 1 << 30)
        self.resize(0, 100_000)
        moved = True
        while moved:
            self.deliver_to_server(0, 1 << 30)
            self.deliver_to_client(0, 1 << 30)
            for stream_id, exchange in self.exchanges.items():
                self.client_acknowledges(stream_id, exchange, 1 << 30)
                self.server_consumes(stream_id, exchange, 1 << 30)
            self.to_server += self.client.data_to_send()
            self.to_client += self.server.take_output()
            moved = bool(self.to_server or self.to_client)


def _body(seed: int, size: int) -> bytes:
    return (b"%d," % seed * (size // 2 + 1))[:size]


RARE = ("client_ends", "client_resets", "server_ends", "server_resets", "resize", "ping")
OFTEN = (
    *("open", "client_sends", "client_acknowledges", "server_answers", "server_sends", "server_consumes"),
    *("deliver_to_server", "deliver_to_client"),
)
NAMES = OFTEN * 3 + RARE


def _steps(script: bytes) -> Iterator[tuple[str, int, int]]:
    """Each four bytes are a step; half of the sizes are small."""
    for name, which, low, high in zip(*(script[offset::4] for offset in range(4)), strict=False):
        yield NAMES[name % len(NAMES)], which, low if high < 128 else low * high


@settings(max_examples=40, deadline=None)
@given(script=st.binary(min_size=400, max_size=800))
def test_any_legal_conversation_brings_both_sides_what_the_other_sent(script: bytes) -> None:
    conversation = Conversation()
    for step in _steps(script):
        conversation.play(step)
    conversation.finish()
    for exchange in conversation.exchanges.values():
        _arrived(exchange)
    _windows_agree(conversation)


def _arrived(exchange: Exchange) -> None:
    assert exchange.sent.startswith(exchange.received)
    assert exchange.answer_sent.startswith(exchange.answer_received)
    if not (exchange.reset or exchange.client_reset):
        assert exchange.reported
        assert exchange.answer_end_seen
        assert exchange.answer_received == exchange.answer_sent
        assert exchange.received == exchange.sent or not exchange.request_end_seen


def _windows_agree(conversation: Conversation) -> None:
    client, server = conversation.client, conversation.server
    assert server.open_streams == 0
    taken = server._incoming._taken
    assert client.outbound_flow_control_window == CONNECTION_WINDOW - taken
    assert client._inbound_flow_control_window_manager.current_window_size == server._outgoing._window
