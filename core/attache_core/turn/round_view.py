"""One round as the client may see it.

Everything up to the first gateway-executed call is shown as it comes. The call itself is hidden: the client sees the
public item of the tool that is run instead. What the model says after it is held back, so that the client sees items
in the model's order, one at a time. Sans-IO.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from attache_core.events.model_events import Finished, ItemAdded, ItemDone, ModelEvent, Started
from attache_core.tools.registry import GatewayTool
from attache_core.turn.pending_calls import OUTPUT_OF


@dataclass(slots=True)
class HeldItem:
    """An item that is shown, whole, once the gateway calls before it have ended."""

    done: ItemDone | None = None

    def take(self, done: ItemDone) -> None:
        """The model has said all of it."""
        self.done = done


@dataclass(slots=True)
class HeldCall:
    """A gateway-executed call that the model made."""

    key: str
    tool: GatewayTool
    arguments: str = ""

    def take(self, done: ItemDone) -> None:
        """The model has written all of it."""
        self.arguments = done.item.get("arguments") or ""


class RoundView:
    """Feed it the strict events of one round; see the module docstring.

    Attributes:
        held: what is not shown yet, in the model's order; it begins with a call.
        client_called: whether the model called a tool that the client executes; the turn ends with this round.
        finished: how the round ended, once it has.
    """

    def __init__(self, gateway_tools: Mapping[str, GatewayTool]) -> None:
        self.held: list[HeldItem | HeldCall] = []
        self.client_called = False
        self.finished: Finished | None = None
        self._gateway_tools = gateway_tools
        self._held_by_key: dict[str, HeldItem | HeldCall] = {}

    @property
    def calls(self) -> list[HeldCall]:
        """The gateway-executed calls of the round, in the model's order."""
        return [entry for entry in self.held if isinstance(entry, HeldCall)]

    def feed(self, said: ModelEvent) -> bool:
        """Take one event in; True when it is to be shown now."""
        if isinstance(said, Finished):
            self.finished = said
            return False
        if isinstance(said, Started):
            return True
        if isinstance(said, ItemAdded):
            return self._add(said)
        entry = self._held_by_key.get(said.key)
        if entry is None:
            return True
        if isinstance(said, ItemDone):
            entry.take(said)
        return False

    def _add(self, said: ItemAdded) -> bool:
        kind = said.item.get("type")
        tool = self._gateway_tools.get(str(said.item.get("name"))) if kind == "function_call" else None
        if tool is not None:
            self._hold(said.key, HeldCall(said.key, tool))
            return False
        self.client_called = self.client_called or kind in OUTPUT_OF
        if not self.held:
            return True
        self._hold(said.key, HeldItem())
        return False

    def _hold(self, key: str, entry: HeldItem | HeldCall) -> None:
        self.held.append(entry)
        self._held_by_key[key] = entry
