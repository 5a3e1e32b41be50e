"""One round as the client may see it.

Everything up to the first gateway-executed call is shown as it comes, a call of the client's in the public shape of its
tool. The gateway-executed call itself is hidden: the client sees the public item of the tool that is run instead. What
the model says after it is held back, so that the client sees items in the model's order, one at a time. Unaware of tool
types. Sans-IO.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from attache_core.events.model_events import Delta, Finished, ItemAdded, ItemDone, ModelEvent, Started
from attache_core.tools.gateway_tool import CallMade, GatewayTool
from attache_core.tools.tool_type import ClientCall, OfferedTool
from attache_core.turn.pending_calls import OUTPUT_OF


@dataclass(slots=True)
class HeldItem:
    """An item that is shown, whole, once the gateway calls before it have ended."""

    added: ItemAdded
    translation: ClientCall | None
    done: ItemDone | None = None

    def take(self, done: ItemDone) -> None:
        """The model has said all of it."""
        self.done = done

    def events(self) -> list[ModelEvent]:
        """What is shown of it."""
        if self.done is None:
            return []
        if self.translation is None:
            return [self.done]
        arguments = self.done.item.get("arguments") or ""
        said: list[ModelEvent] = [self.added, self.done]
        if arguments:
            said.insert(1, Delta(self.added.key, None, "arguments", arguments))
        return [shown for event in said for shown in self.translation.feed(event)]


@dataclass(slots=True)
class HeldCall:
    """A gateway-executed call that the model made.

    Attributes:
        name: the tool's name as the model knows it.
        approval_request_id: the id of the item by which a user has approved it, in a turn before.
    """

    key: str
    name: str
    offered: OfferedTool
    arguments: str = ""
    call_id: str = ""
    approval_request_id: str | None = None

    @property
    def tool(self) -> GatewayTool:
        """What executes it."""
        assert isinstance(self.offered.binding, GatewayTool)
        return self.offered.binding

    @property
    def parameters(self) -> object:
        """The JSON schema of its arguments."""
        return self.offered.function.get("parameters")

    def take(self, done: ItemDone) -> None:
        """The model has written all of it."""
        self.arguments = done.item.get("arguments") or ""
        self.call_id = str(done.item.get("call_id") or "")

    @property
    def made(self) -> CallMade:
        """The call as its tool gets it."""
        return CallMade(self.key, self.arguments, self.call_id, self.approval_request_id)


class RoundView:
    """Feed it the strict events of one round; see the module docstring.

    Attributes:
        held: what is not shown yet, in the model's order; it begins with a call.
        client_called: whether the model called a tool that the client executes; the turn ends with this round.
        finished: how the round ended, once it has.
    """

    def __init__(self, tools: Mapping[str, OfferedTool]) -> None:
        self.held: list[HeldItem | HeldCall] = []
        self.client_called = False
        self.finished: Finished | None = None
        self._tools = tools
        self._held_by_key: dict[str, HeldItem | HeldCall] = {}
        self._translations: dict[str, ClientCall] = {}

    @property
    def calls(self) -> list[HeldCall]:
        """The gateway-executed calls of the round, in the model's order."""
        return [entry for entry in self.held if isinstance(entry, HeldCall)]

    def feed(self, said: ModelEvent) -> list[ModelEvent]:
        """Take one event in; what comes out is to be shown now."""
        if isinstance(said, Finished):
            self.finished = said
            return []
        if isinstance(said, Started):
            return [said]
        if isinstance(said, ItemAdded):
            return self._add(said)
        entry = self._held_by_key.get(said.key)
        if entry is None:
            translation = self._translations.get(said.key)
            return [said] if translation is None else _translated(said, translation)
        if isinstance(said, ItemDone):
            entry.take(said)
        return []

    def _add(self, said: ItemAdded) -> list[ModelEvent]:
        kind, name = said.item.get("type"), str(said.item.get("name"))
        tool = self._tools.get(name) if kind == "function_call" else None
        if tool is not None and isinstance(tool.binding, GatewayTool):
            self._hold(said.key, HeldCall(said.key, name, tool))
            return []
        self.client_called = self.client_called or kind in OUTPUT_OF
        translation = None if tool is None else _translation(tool)
        if self.held:
            self._hold(said.key, HeldItem(said, translation))
            return []
        if translation is None:
            return [said]
        self._translations[said.key] = translation
        return translation.feed(said)

    def _hold(self, key: str, entry: HeldItem | HeldCall) -> None:
        self.held.append(entry)
        self._held_by_key[key] = entry


def _translated(said: ModelEvent, translation: ClientCall) -> list[ModelEvent]:
    each = said.each() if isinstance(said, Delta) else (said,)
    return [shown for one in each for shown in translation.feed(one)]


def _translation(tool: OfferedTool) -> ClientCall | None:
    if isinstance(tool.binding, GatewayTool) or tool.binding.new_call is None:
        return None
    return tool.binding.new_call()
