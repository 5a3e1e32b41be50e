"""The response of a turn or of a round at its beginning: where it gets its id, its time, its echo and its padding."""

from __future__ import annotations

import time
from collections.abc import Sequence

from attache_core.events.obfuscation import Obfuscation, wants_obfuscation
from attache_core.events.sequencer import Sequencer
from attache_core.json_codec import Json
from attache_core.types.ids import item_id, new_id
from attache_core.types.response import new_response
from attache_core.types.turn import TurnRequest


def open_response(turn: TurnRequest, tools: Sequence[Json] | None = None) -> Sequencer:
    """A sequencer over a response in progress, under the turn's id where somebody above gave it one.

    `tools` is what it shows of the declarations, by default what `types.tools` knows to show. Its `store` is whether
    the turn will be stored: that takes a `persist` above, not the client's wish alone.
    """
    response_id = turn.facts.response_id or new_id("resp")
    response = new_response(turn.body, response_id=response_id, created_at=int(time.time()))
    response["store"] = turn.facts.stored
    if tools is not None:
        response["tools"] = list(tools)
    return Sequencer(
        response,
        make_id=item_id,
        obfuscation=Obfuscation() if wants_obfuscation(turn.body) else None,
    )
