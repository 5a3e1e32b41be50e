"""The tools of one request: what the model is told of them, and who executes its calls.

Made for one turn and never changed. Each declaration becomes functions, because that is all an inference server
understands. The way back, from the model's name to the tool that was meant, is in `tools`; a name that is not in it is
never executed. Unaware of tool types, rounds, events and stores.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property

from attache_core.errors import AttacheError, ClientError
from attache_core.json_codec import Json
from attache_core.tools.bugs import bugs_without_text
from attache_core.tools.gateway_tool import GatewayTool
from attache_core.tools.names import Origin, former_name, model_names
from attache_core.tools.task_scope import task_scope
from attache_core.tools.tool_type import Announcement, ClientTool, Naming, Offer, OfferedTool, Teller
from attache_core.tools.tool_types import ToolTypes


@dataclass(frozen=True)
class ToolRegistry:
    """The tools of one request.

    Attributes:
        function_tools: what the model is told, in the order of the declarations and, within one, in the order of its
            offer; without the tools that are deferred.
        tools: every tool by the name that the model knows, deferred ones included.
        announcements: what the client is shown before the model says anything, in the order of the declarations.
        tellers: how the model is told of items, by their type.
        releases: what is to be called at the end of the turn; see `serving`.
    """

    function_tools: tuple[Json, ...] = ()
    tools: Mapping[str, OfferedTool] = field(default_factory=dict)
    announcements: tuple[Announcement, ...] = ()
    tellers: Mapping[str, Teller] = field(default_factory=dict)
    releases: tuple[Callable[[], Awaitable[None]], ...] = ()

    def serving(self) -> AsyncExitStack:
        """Calls may run as long as the block lasts; then every offer gives back what they acquired.

        One that fails to keeps no other from it: that is logged as the tool's bug.
        """
        stack = AsyncExitStack()
        for release in self.releases:
            stack.push_async_callback(_release, release)
        return stack

    @cached_property
    def gateway_tools(self) -> dict[str, GatewayTool]:
        """The gateway-executed tools by the name that the model knows."""
        return {name: tool.binding for name, tool in self.tools.items() if isinstance(tool.binding, GatewayTool)}

    def name_of(self, tool_type: str, owner: str | None, name: str, naming: Naming = Naming.FREE) -> str:
        """The name of a tool of this request; of one that is not declared, a name that no tool of it has."""
        known = self._names.get((tool_type, owner, name))
        if known is not None:
            return known
        return former_name((owner or tool_type, name), self.tools, labelled=naming is Naming.LABELLED)

    def has(self, tool_type: str, owner: str | None, name: str) -> bool:
        """Whether it is a tool of this request."""
        return (tool_type, owner, name) in self._names

    @cached_property
    def _names(self) -> dict[tuple[str, str | None, str], str]:
        return {(tool.type, tool.owner, tool.name): name for name, tool in self.tools.items()}


async def build_registry(tools: Sequence[Json], types: ToolTypes, found: Sequence[int] = ()) -> ToolRegistry:
    """Read the declarations of a request, asking all at once what they offer where somebody has to be asked.

    Who cannot be asked has an announcement that says so and no tools; it neither fails nor delays the others. `found`
    are the places of what a search has loaded (see `tool_search.LoadedTools`): where there are more tools than the
    settings allow, of these the first are deferred again, because a client could not take back what was found.

    Raises:
        ClientError: a declaration cannot be used, or there are more tools than the settings allow.
    """
    if not tools:
        return ToolRegistry(tellers=types.tellers)
    types.check(tools)
    offers = await _offers(types, tools)
    registry = _registry(_fitting(offers, found, types.max_tools), types)
    if len(registry.function_tools) > types.max_tools:
        message = (
            f"The request gives the model {len(registry.function_tools)} tools, and at most "
            f"{types.max_tools} are possible. Name those that are needed in `allowed_tools`."
        )
        raise ClientError(message, param="tools", code="too_many_tools")
    return registry


async def _release(release: Callable[[], Awaitable[None]]) -> None:
    with suppress(AttacheError), bugs_without_text():
        await release()


async def _offers(types: ToolTypes, tools: Sequence[Json]) -> list[Offer]:
    if len(tools) <= 1:
        return [_accepted(await _offer(types, tool)) for tool in tools]
    async with task_scope() as tasks:
        asked = [tasks.start(_offer(types, tool)) for tool in tools]
        return [_accepted(await offer) for offer in asked]


async def _offer(types: ToolTypes, tool: Json) -> Offer | AttacheError:
    """A task that fails would hide its error in a group of errors, and that of which declaration would be chance."""
    try:
        with bugs_without_text():
            return await types.of(tool).offer(tool)
    except AttacheError as error:
        return error


def _accepted(offer: Offer | AttacheError) -> Offer:
    if isinstance(offer, AttacheError):
        raise offer
    return offer


def _fitting(offers: Sequence[Offer], found: Sequence[int], max_tools: int) -> list[Offer]:
    """The offers, with as many tools of the found ones deferred as are too many; of one, its last tools first."""
    fitting = list(offers)
    excess = sum(not tool.deferred for offer in offers for tool in offer.tools) - max_tools
    for place in found:
        tools = list(offers[place].tools)
        for at in reversed(range(len(tools))):
            if excess > 0 and not tools[at].deferred:
                tools[at] = replace(tools[at], deferred=True)
                excess -= 1
        fitting[place] = replace(offers[place], tools=tuple(tools))
    return fitting


def _registry(offers: Sequence[Offer], types: ToolTypes) -> ToolRegistry:
    offered = [tool for offer in offers for tool in offer.tools]
    tools = dict(zip(_names(offered), offered, strict=True))
    told = tuple({**tool.function, "name": name} for name, tool in tools.items() if not tool.deferred)
    announcements = tuple(offer.announcement for offer in offers if offer.announcement is not None)
    releases = tuple(offer.release for offer in offers if offer.release is not None)
    return ToolRegistry(told, tools, announcements, types.tellers, releases)


def _names(offered: Sequence[OfferedTool]) -> list[str]:
    """The names of the tools, in their order. The client's choose first: what servers list never changes them."""
    names = {index: tool.name for index, tool in enumerate(offered) if tool.naming is Naming.FIXED}
    for is_clients in (True, False):
        places = [
            index
            for index, tool in enumerate(offered)
            if tool.naming is not Naming.FIXED and isinstance(tool.binding, ClientTool) is is_clients
        ]
        origins = [_origin(offered[index]) for index in places]
        labelled = {_origin(offered[index]) for index in places if offered[index].naming is Naming.LABELLED}
        names.update(zip(places, model_names(origins, set(names.values()), labelled), strict=True))
    return [names[index] for index in range(len(offered))]


def _origin(tool: OfferedTool) -> Origin:
    return (tool.owner or tool.type, tool.name)
