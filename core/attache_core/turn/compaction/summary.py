"""Asking the model for a summary of older items: one call of what is below.

The model is given the items as in any round, and after them what it is to do; no tools, and nothing of how the client
wants its answers. Where the items do not fit into its context, the oldest of them are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Final

from attache_core.errors import UpstreamError
from attache_core.json_codec import Json
from attache_core.tools.history import model_input
from attache_core.tools.registry import ToolRegistry
from attache_core.turn.below import Below
from attache_core.turn.compaction.checkpoint import text_message
from attache_core.turn.truncation import truncating
from attache_core.types.ids import new_id
from attache_core.types.turn import TurnRequest

PROMPT: Final = (
    "Stop here and write a handover of this conversation so far, for whoever continues it and sees nothing of it but "
    "your text and some of the user's messages. Say what the user wants, with every condition that was set; what was "
    "done and what was decided, with the reasons; what was found out, with names, numbers, identifiers and quotations "
    "kept exactly; what is not finished, and what the next step is. Do not answer the conversation, call no tools, and "
    "write the handover alone."
)

_CARRIED: Final = ("model", "instructions", "user", "safety_identifier", "prompt_cache_key", "service_tier")
"""What of the request the call has as well: the model, who is told what, and how that is billed and cached."""

_NO_TOOLS = ToolRegistry()


@dataclass(frozen=True, slots=True)
class Summary:
    """What the model wrote, and the usage that its server reported."""

    text: str
    usage: Json | None


async def summarise(turn: TurnRequest, items: Sequence[Json], below: Below, max_tokens: int) -> Summary:
    """A summary of `items`; the turn says for whom.

    Raises:
        AttacheError: what `below` raises.
        UpstreamError: 502 `compaction_failed`, there is no whole text.
    """
    body = {name: turn.body[name] for name in _CARRIED if turn.body.get(name) is not None}
    asked = [*model_input(items, _NO_TOOLS), text_message("user", PROMPT)]
    asking = {"input": asked, "max_output_tokens": max_tokens, "store": False, "stream": False, "truncation": "auto"}
    call = replace(turn, body={**body, **asking}).with_facts(response_id=new_id("resp"))
    response: Json = {}
    async with aclosing(truncating(below)(call)) as events:
        async for event in events:
            response = event.data["response"] if event.is_terminal else response
    return Summary(_text(response), response.get("usage"))


def _text(response: Json) -> str:
    parts = [
        part.get("text") or ""
        for item in response.get("output") or ()
        if item.get("type") == "message"
        for part in item.get("content") or ()
        if part.get("type") == "output_text"
    ]
    text = "".join(parts).strip()
    if response.get("status") == "completed" and text:
        return text
    message = "The conversation could not be compacted: the model did not come to the end of a summary."
    raise UpstreamError(message, code="compaction_failed")
