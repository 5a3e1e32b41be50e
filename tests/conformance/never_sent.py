"""Event types that the API has and the gateway never sends, with the reason. Table only.

A conformance run fails on an event type that it neither saw nor finds here, and on one that it saw and finds here.
"""

from __future__ import annotations

from typing import Final

_AUDIO = "audio answers are not asked for by anything that the gateway takes"
_NOT_RUN = "neither the gateway nor an inference server that was recorded runs such a tool"
_COMPACTION = "a checkpoint is said whole: until there is one, an error can still be an HTTP error"

NEVER_SENT: Final[dict[str, str]] = {
    "error": "a stream that fails ends with `response.failed`, which says the same; SDKs stop at an `error` before it",
    "response.audio.delta": _AUDIO,
    "response.audio.done": _AUDIO,
    "response.audio.transcript.delta": _AUDIO,
    "response.audio.transcript.done": _AUDIO,
    "response.compaction.compacting": _COMPACTION,
    "response.file_search_call.completed": _NOT_RUN,
    "response.file_search_call.in_progress": _NOT_RUN,
    "response.file_search_call.searching": _NOT_RUN,
    "response.image_generation_call.completed": _NOT_RUN,
    "response.image_generation_call.generating": _NOT_RUN,
    "response.image_generation_call.in_progress": _NOT_RUN,
    "response.image_generation_call.partial_image": _NOT_RUN,
    "response.queued": "no response runs in the background",
}
