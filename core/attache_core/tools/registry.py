"""The tools of one request: what the model is told of them, and which of its calls the gateway executes.

Made for one turn and never changed. A server's tools become function tools, because that is all an inference server
understands; a client's own tools, of whatever type, stay as they were declared. The way back, from the model's name to
the one server that declared the tool, is in `gateway_tools`, and no other server is ever sent that call. Unaware of
rounds, events and stores.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from attache_core.errors import ClientError
from attache_core.json_codec import Json
from attache_core.tools.declarations import McpDeclaration, function_tool, mcp_declarations
from attache_core.tools.gateway_tool import CallResult, GatewayTool
from attache_core.tools.mcp.failure import McpServerError
from attache_core.tools.mcp.server import McpServer
from attache_core.tools.mcp.servers import McpServers
from attache_core.tools.names import Origin, is_valid_name, labelled_names, model_names
from attache_core.tools.task_scope import task_scope
from attache_core.types.items import ORCHESTRATION_ITEMS
from attache_core.types.tools import called_names

__all__ = [
    "GatewayTool",
    "McpListing",
    "ToolRegistry",
    "build_registry",
    "call_id_of",
    "model_input",
    "model_tool_choice",
    "needs_discovery",
]


@dataclass(frozen=True, slots=True)
class McpListing:
    """What one declared server offers to this request.

    Attributes:
        tools: as in an `mcp_list_tools` item: `{name, description, input_schema, annotations: {read_only}}`; those that
            `allowed_tools` admits, in the server's order.
        error: why the server could not be listed, for the item's `error`; then there are no tools.
    """

    server_label: str
    tools: tuple[Json, ...] = ()
    error: str | None = None


@dataclass(frozen=True, slots=True)
class ToolRegistry:
    """The tools of one request.

    Attributes:
        function_tools: what the model is told, in the order of the declarations and, within a server, in the server's
            order: a client's own tools as they were declared, a server's tools as functions.
        listings: one for each MCP declaration, in their order.
        gateway_tools: the gateway-executed tools by the name that the model knows.
    """

    function_tools: tuple[Json, ...] = ()
    listings: tuple[McpListing, ...] = ()
    gateway_tools: Mapping[str, GatewayTool] = field(default_factory=dict)

    @property
    def function_names(self) -> set[str]:
        """Every name that the model knows."""
        return called_names(self.function_tools)


@dataclass(frozen=True, slots=True)
class McpTool:
    """A tool of an MCP server; a `GatewayTool`."""

    server_label: str
    name: str
    server: McpServer
    servers: McpServers

    async def call(self, arguments: Json) -> CallResult:
        """Call it on the server that declared it."""
        return await self.servers.call_tool(self.server, self.name, arguments)


def needs_discovery(tools: Sequence[Json], mcp: McpServers) -> bool:
    """Whether `build_registry` would have to contact a server, and so might take a while.

    Raises:
        ClientError: as `build_registry`.
    """
    return any(not mcp.knows_tools(declaration.server) for declaration in mcp_declarations(tools).values())


async def build_registry(tools: Sequence[Json], mcp: McpServers) -> ToolRegistry:
    """Read the `tools` of a create request, asking MCP servers for their tools, all at once.

    A server that fails has a listing with an error and no tools; it neither fails nor delays the others.

    Raises:
        ClientError: a declaration cannot be used, or there are more servers or tools than the settings allow.
    """
    declarations = mcp_declarations(tools)
    if len(declarations) > mcp.settings.max_servers_per_request:
        limit = mcp.settings.max_servers_per_request
        raise ClientError(f"A request may declare at most {limit} MCP servers.", param="tools", code="too_many_tools")
    listings = await _list_all(list(declarations.values()), mcp)
    registry = _registry(tools, dict(zip(declarations, listings, strict=True)), declarations, mcp)
    if len(registry.function_tools) > mcp.settings.max_tools_per_request:
        message = (
            f"The request gives the model {len(registry.function_tools)} tools, and at most "
            f"{mcp.settings.max_tools_per_request} are possible. Name those that are needed in `allowed_tools`."
        )
        raise ClientError(message, param="tools", code="too_many_tools")
    return registry


def model_input(items: Sequence[Json], registry: ToolRegistry) -> list[Json]:
    """Items as an inference server understands them.

    An `mcp_call` becomes the function call and the output that the model made and was told; what only orchestration
    sees is left out; every other item passes as it is.
    """
    names = _names_by_origin(registry)
    told: list[Json] = []
    for position, item in enumerate(items):
        if item.get("type") == "mcp_call":
            told += _told_call(item, position, names, registry)
        elif item.get("type") not in ORCHESTRATION_ITEMS:
            told.append(item)
    return told


def call_id_of(item_id: str) -> str:
    """The `call_id` under which the model knows the call of an `mcp_call` item: one for the item's whole life."""
    return f"call_{item_id.removeprefix('mcp_')}"


def model_tool_choice(choice: object, registry: ToolRegistry) -> object:
    """A `tool_choice` as an inference server understands it.

    A server's tool is chosen by the name that the model knows, a server as a whole by `required`. Where the chosen tool
    is not to be had, because its server could not be listed, the model may choose for itself.
    """
    if not isinstance(choice, dict):
        return choice
    if choice.get("type") == "allowed_tools":
        chosen = [function for entry in choice.get("tools") or () for function in _chosen(entry, registry)]
        return {**choice, "tools": chosen} if chosen else "auto"
    if choice.get("type") != "mcp":
        return choice
    chosen = _chosen(choice, registry)
    if not chosen:
        return "auto"
    return "required" if choice.get("name") is None else chosen[0]


async def _list_all(declarations: Sequence[McpDeclaration], mcp: McpServers) -> list[McpListing]:
    async with task_scope() as tasks:
        running = [tasks.start(_listing(declaration, mcp)) for declaration in declarations]
        return [await listing for listing in running]


async def _listing(declaration: McpDeclaration, mcp: McpServers) -> McpListing:
    try:
        tools = await mcp.list_tools(declaration.server)
    except McpServerError as error:
        return McpListing(declaration.server_label, error=error.message)
    return McpListing(declaration.server_label, tuple(tool for tool in tools if declaration.allowed.admits(tool)))


def _registry(
    tools: Sequence[Json],
    listings: Mapping[int, McpListing],
    declarations: Mapping[int, McpDeclaration],
    mcp: McpServers,
) -> ToolRegistry:
    """`listings` and `declarations` are by the index of the declaration in `tools`."""
    own_names = called_names(tools)
    origins = [(listing.server_label, tool["name"]) for listing in listings.values() for tool in listing.tools]
    names = dict(zip(origins, model_names(origins, own_names), strict=True))
    functions: list[Json] = []
    gateway_tools: dict[str, GatewayTool] = {}
    for index, declared in enumerate(tools):
        if index not in listings:
            functions.append(declared)
            continue
        label = listings[index].server_label
        for tool in listings[index].tools:
            name = names[label, tool["name"]]
            functions.append(function_tool(name, tool["description"], tool["input_schema"]))
            gateway_tools[name] = McpTool(label, tool["name"], declarations[index].server, mcp)
    return ToolRegistry(tuple(functions), tuple(listings.values()), gateway_tools)


def _names_by_origin(registry: ToolRegistry) -> dict[Origin, str]:
    return {(tool.server_label, tool.name): name for name, tool in registry.gateway_tools.items()}


def _told_call(item: Json, position: int, names: Mapping[Origin, str], registry: ToolRegistry) -> list[Json]:
    given_id = item.get("id")
    call_id = call_id_of(given_id if isinstance(given_id, str) else f"{position}")
    origin = (str(item.get("server_label")), str(item.get("name")))
    return [
        {
            "type": "function_call",
            "call_id": call_id,
            "name": names.get(origin) or _former_name(origin, registry),
            "arguments": item.get("arguments") or "{}",
        },
        {
            "type": "function_call_output",
            "call_id": call_id,
            "output": CallResult(item.get("output"), item.get("error")).model_text,
        },
    ]


def _former_name(origin: Origin, registry: ToolRegistry) -> str:
    """A name for a tool of the past, which must not be mistaken for a tool of this request."""
    known = registry.function_names
    if is_valid_name(origin[1]) and origin[1] not in known:
        return origin[1]
    return next(name for name in labelled_names(origin) if name not in known)


def _chosen(entry: Json, registry: ToolRegistry) -> list[Json]:
    """The functions that one entry of a tool choice means."""
    if entry.get("type") != "mcp":
        return [entry]
    label, wanted = entry.get("server_label"), entry.get("name")
    return [
        {"type": "function", "name": name}
        for name, tool in registry.gateway_tools.items()
        if tool.server_label == label and wanted in (None, tool.name)
    ]
