"""How much a connection takes from its peer. What is beyond ends the stream or, if that cannot help, the connection.

Streams that the peer resets are not among it, however early and however many: a proxy resets the stream of each client
that leaves, and to end the connection for it would end the streams of all others. Those that are open are bounded.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Http2Limits:
    """The bounds of one connection. There is no clock: what a flood costs is counted in frames.

    Attributes:
        max_concurrent_streams: streams open at a time; a further one is refused (REFUSED_STREAM). Announced.
        stream_window_bytes: body of one request that may wait for the layer above. Announced.
        connection_window_bytes: body of all streams that may be on its way to us, 65,535 at least. It is given back as
            it comes, so that a stream which nobody reads stops no other; the streams' windows bound what waits.
        max_header_list_bytes: a header list, each field counted with 32 bytes more (RFC 9113, 6.5.2). Announced.
        max_header_block_bytes: the compressed block of one list, HEADERS and CONTINUATION together.
        max_continuation_frames: CONTINUATION frames of one block.
        max_remembered_resets: streams reset here whose late frames are passed over. A peer that keeps to
            `max_concurrent_streams` cannot have frames in flight for more streams than that.
        max_waiting_answers: PING and SETTINGS acknowledgements and RST_STREAM frames that wait to be taken.
        max_idle_frames: frames in a row that bring nothing: empty DATA, WINDOW_UPDATE, SETTINGS, PRIORITY, unknown
            types, RST_STREAM of streams that are gone. A request, a body and anything of ours starts the count anew;
            PING, with which a peer without requests looks whether we are there, is bounded by `max_waiting_answers`.
        max_broken_streams: streams that we reset for a violation of the peer's, less those that were answered.
    """

    max_concurrent_streams: int = 1024
    stream_window_bytes: int = 256 * 1024
    connection_window_bytes: int = 16 * 1024 * 1024
    max_header_list_bytes: int = 16 * 1024
    max_header_block_bytes: int = 16 * 1024
    max_continuation_frames: int = 16
    max_remembered_resets: int = 4096
    max_waiting_answers: int = 1000
    max_idle_frames: int = 10_000
    max_broken_streams: int = 10_000
