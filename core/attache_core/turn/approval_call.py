"""A call that a user is asked for: the item that shows it, and the fingerprint that holds it to what was asked.

Unaware of stores and rounds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from attache_core.events.model_events import ItemAdded, ItemDone, ModelEvent
from attache_core.json_codec import Json
from attache_core.tools.approval_fingerprint import fingerprint, stretched
from attache_core.tools.approval_history import REQUEST
from attache_core.tools.gateway_tool import GatewayTool
from attache_core.tools.tool_type import OfferedTool
from attache_core.types.ids import item_id


@dataclass(frozen=True, slots=True)
class ApprovalCall:
    """A call that was asked for.

    Attributes:
        request_id: the id of the request's item.
        tool: the gateway-executed tool, as it is offered in this turn.
    """

    request_id: str
    tool: OfferedTool
    arguments: str

    @property
    def target(self) -> str:
        """What the tool says of where its calls go."""
        assert isinstance(self.tool.binding, GatewayTool)
        return self.tool.binding.target

    @property
    def request(self) -> Json:
        """The item by which the user is asked."""
        return {
            "id": self.request_id,
            "type": REQUEST,
            "arguments": self.arguments,
            "name": self.tool.name,
            "server_label": self.tool.owner,
        }

    def events(self) -> list[ModelEvent]:
        """The whole life of that item."""
        key = f"{REQUEST}.{self.request_id}"
        return [ItemAdded(key, self.request), ItemDone(key, self.request)]


def new_approval_call(tool: OfferedTool, arguments: str) -> ApprovalCall:
    """A call that is to be asked for, under a new id."""
    return ApprovalCall(item_id(REQUEST), tool, arguments)


async def fingerprints(calls: Sequence[tuple[ApprovalCall, bytes]]) -> list[str]:
    """Of each call with its salt, in their order; each target is stretched once."""
    return await asyncio.to_thread(_fingerprinted, calls) if calls else []


def _fingerprinted(calls: Sequence[tuple[ApprovalCall, bytes]]) -> list[str]:
    places = {(call.target, salt) for call, salt in calls}
    keys = {place: stretched(*place) for place in places}
    return [
        fingerprint(keys[call.target, salt], call.tool.owner, call.tool.name, call.arguments) for call, salt in calls
    ]
