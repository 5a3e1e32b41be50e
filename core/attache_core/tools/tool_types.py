"""The tool types of a worker process, by the declarations that they read. Made once and never changed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

from attache_core.json_codec import Json
from attache_core.tools.tool_type import Teller, ToolType
from attache_core.types.extensions import Extensions
from attache_core.types.items import ITEM_TYPES
from attache_core.types.mcp_servers import NO_SERVERS, KnownServers
from attache_core.types.shape import Shape
from attache_core.types.tools import SHAPES, validate_tools

MAX_TOOLS_PER_REQUEST = 128


def extensions(
    shapes: Iterable[Mapping[str, type[Shape]]],
    tellers: Iterable[Mapping[str, Teller]],
    mcp_servers: KnownServers,
) -> Extensions:
    """What these types, their calls' items, and these servers add to the API's own vocabulary, or take otherwise."""
    return Extensions(
        {name: shape for each in shapes for name, shape in each.items() if SHAPES.get(name) is not shape},
        frozenset(name for each in tellers for name in each if name not in ITEM_TYPES),
        mcp_servers,
    )


class ToolTypes:
    """Finds the type of a declaration.

    Attributes:
        max_tools: functions that one request may give to the model.
        tellers: how the model is told of the items of all types.
        extensions: what a check of requests must know of them.
    """

    def __init__(
        self,
        types: Iterable[ToolType],
        *,
        max_tools: int = MAX_TOOLS_PER_REQUEST,
        mcp_servers: KnownServers = NO_SERVERS,
    ) -> None:
        """Of two types that read the same declarations, the later one does."""
        known = list(types)
        self.max_tools = max_tools
        self.tellers: Mapping[str, Teller] = {name: teller for each in known for name, teller in each.tellers.items()}
        self._by_declaration = {name: each for each in known for name in each.shapes}
        shapes, tellers = (each.shapes for each in known), (each.tellers for each in known)
        self.extensions = extensions(shapes, tellers, mcp_servers)

    def of(self, declaration: Json) -> ToolType:
        """The type of a declaration that `check` has passed."""
        return self._by_declaration[declaration["type"]]

    def check(self, tools: Sequence[Json]) -> None:
        """Look at the `tools` of a request.

        Asked in the tool loop again, because a chain may have no filter that asked before, and what is refused is
        dangerous: labels that do not tell servers apart, headers that break the framing of HTTP.

        Raises:
            ClientError: an entry, of whatever type, cannot be used; `param` says which.
        """
        if not tools:
            return
        validate_tools(tools, self.extensions)
        together: dict[ToolType, list[Json]] = {}
        for tool in tools:
            together.setdefault(self.of(tool), []).append(tool)
        for each, declarations in together.items():
            each.check_together(declarations)

    def needs_discovery(self, tools: Sequence[Json]) -> bool:
        """Whether somebody has to be asked what one of these declarations offers, which `check` has passed."""
        return any(self.of(tool).needs_discovery(tool) for tool in tools)

    def may_need_approval(self, declaration: Json) -> bool:
        """Whether calls of what it declares, which `check` has passed, might have to be approved."""
        return self.of(declaration).may_need_approval(declaration)

    def public(self, tools: Sequence[Json]) -> list[Json]:
        """What a response shows of these declarations; of one that cannot be used, its `type` alone."""
        return [self._public(tool) for tool in tools]

    def _public(self, tool: Json) -> Json:
        known = self._by_declaration.get(str(tool.get("type")))
        return {"type": tool.get("type")} if known is None else known.public(tool)


@asynccontextmanager
async def open_types(types: Iterable[ToolType]) -> AsyncIterator[None]:
    """The types are open as long as the block lasts; they are closed in the reverse order."""
    async with AsyncExitStack() as stack:
        for each in types:
            await each.open()
            stack.push_async_callback(each.close)
        yield
