"""Tool declarations: what may be declared, and what of it a response shows.

Knows who runs each type of tool: the gateway (`mcp`), the client (functions, custom tools, namespaces of both, tool
searches of its own, shells and patches), or nobody here (what OpenAI hosts, a shell in a container among it); what else
runs here is in `Extensions`. Is unaware of how a tool runs. Invariant: nothing that is declared is ignored: a tool type
that the gateway would not honour is refused, or left out by name where the operator says so.
Source: API reference, "tools"; what a response shows as in OpenAI's streams.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Any

from pydantic import PlainValidator, ValidationInfo

from attache_core.errors import ClientError
from attache_core.json_codec import Json
from attache_core.types.extensions import NO_EXTENSIONS, Extensions, extensions_of
from attache_core.types.mcp_servers import require_reachable
from attache_core.types.mcp_tool import McpTool, public_mcp_tool
from attache_core.types.shape import Check, Name, Shape, array_of, check, named_by_type, one_of
from attache_core.types.violation import enumerated, quoted, refused

MAX_TOOLS = 128
"""How many tools one request may declare; an MCP server and a namespace count as one."""

HOSTED_TOOLS = frozenset(
    {"web_search", "web_search_preview", "file_search", "code_interpreter", "image_generation", "computer"}
    | {"computer_use_preview", "programmatic_tool_calling"}
)
"""The API's tool types that are built into it, and that nothing here runs; some also come with a date appended."""

CONTAINERS = frozenset({"container_auto", "container_reference"})
"""The environments of a shell that OpenAI hosts."""

_DATE = re.compile(r"_[0-9]{4}_[0-9]{2}_[0-9]{2}\Z")


class FunctionTool(Shape):
    """A function that the client executes."""

    name: Name
    parameters: dict[str, Any] | None = None
    strict: bool | None = None
    description: str | None = None


class Grammar(Shape):
    """What the input of a custom tool must follow."""

    definition: str
    syntax: Annotated[str, one_of("lark", "regex")]


_check_format = named_by_type({"text": Shape, "grammar": Grammar})


class CustomTool(Shape):
    """A tool with free text as input, which the client executes."""

    name: Name
    description: str | None = None
    format: Annotated[Any, PlainValidator(_check_format)] | None = None


class LocalEnvironment(Shape):
    """The client's own."""


_ENVIRONMENTS: Mapping[str, type[Shape]] = {"local": LocalEnvironment}
_check_environment = named_by_type(_ENVIRONMENTS)


class ShellTool(Shape):
    """Commands that the client runs."""

    environment: Annotated[Any, PlainValidator(_check_environment)] | None = None


class ClientTool(Shape):
    """A tool of which there is nothing to say but its type."""


_CALLED_BY_NAME: dict[str, type[Shape]] = {"function": FunctionTool, "custom": CustomTool}
_check_members = array_of(named_by_type(_CALLED_BY_NAME), "an array of tools")


class NamespaceTool(Shape):
    """Functions and custom tools under a common name."""

    name: Name
    description: str | None = None
    tools: Annotated[Any, PlainValidator(_check_members)]


class ToolSearch(Shape):
    """A search for further tools, which the client executes."""

    execution: Annotated[str, one_of("client")]
    description: str | None = None
    parameters: dict[str, Any] | None = None


SHAPES: Mapping[str, type[Shape]] = {
    "function": FunctionTool,
    "mcp": McpTool,
    "custom": CustomTool,
    "namespace": NamespaceTool,
    "tool_search": ToolSearch,
    "shell": ShellTool,
    "local_shell": ClientTool,
    "apply_patch": ClientTool,
}
"""The types of the API that run here, by their `type`."""

check_loaded_tools = array_of(named_by_type({**_CALLED_BY_NAME, "namespace": NamespaceTool}), "an array of tools")
"""Look at tools that a client found: only what it executes itself, and so nothing that holds credentials."""

_CLIENT_EXECUTED = {name: shape for name, shape in SHAPES.items() if name != "mcp"}

_check_client_executed = array_of(named_by_type(_CLIENT_EXECUTED), "an array of tools")


def check_additional_tools(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    """Look at tools that stand in an item of `input`, which is stored: none that may hold credentials."""
    _require_few(value)
    return _check_client_executed(value)


def _require_few(tools: object) -> None:
    if isinstance(tools, list) and len(tools) > MAX_TOOLS:
        bound = f"Expected an array with maximum length {MAX_TOOLS}, but got an array with length {len(tools)} instead."
        raise refused("array_above_max_length", f"Invalid '{{param}}': array too long. {bound}")


def is_hosted(tool: object, installed: Container[str] = ()) -> bool:
    """Whether a declaration is of a tool that is built into OpenAI's API and that nothing here runs.

    `installed` are the types that do run here besides the API's own, or otherwise than these.
    """
    if not isinstance(tool, dict) or not isinstance(tool.get("type"), str) or tool["type"] in installed:
        return False
    if tool["type"] == "tool_search":
        return tool.get("execution") in (None, "server")
    if tool["type"] == "shell":
        return _environment(tool) in CONTAINERS
    return _DATE.sub("", tool["type"]) in HOSTED_TOOLS


def chosen_type(kind: str) -> str:
    """What a `tool_choice` means by a type: of a tool that is built into the API, also its previews and dated ones."""
    name = _DATE.sub("", kind)
    return name.removesuffix("_preview") if name in HOSTED_TOOLS else kind


def _environment(shell: Json) -> str | None:
    environment = shell.get("environment")
    kind = environment.get("type") if isinstance(environment, dict) else None
    return kind if isinstance(kind, str) else None


@lru_cache(maxsize=8)
def _declarations_check(extensions: Extensions) -> Check:
    check_supported = named_by_type({**SHAPES, **extensions.tools})

    def check_tool(value: Any) -> Any:  # noqa: ANN401 - any JSON value
        return value if is_hosted(value, extensions.tools) else check_supported(value)

    return array_of(check_tool, "an array of tools")


def check_tools(value: Any, info: ValidationInfo) -> Any:  # noqa: ANN401 - any JSON value
    """Look at `tools`: their number, each declaration, that names and labels are unique, and MCP servers known.

    Of a hosted tool only the type is looked at; see `require_runnable`.
    """
    _require_few(value)
    return _check_each(value, info)


def _check_each(value: Any, info: ValidationInfo) -> Any:  # noqa: ANN401 - any JSON value
    extensions = extensions_of(info)
    _declarations_check(extensions)(value)
    _require_unique("name", [tool["name"] for tool in value if tool["type"] in _CALLED_BY_NAME])
    _require_unique("name", declared(value, "namespace", "name"))
    _require_unique("server_label", declared(value, "mcp", "server_label"))
    require_reachable(value, extensions.mcp_servers)
    return value


class _Tools(Shape):
    tools: Annotated[Any, PlainValidator(_check_each)]


def validate_tools(tools: object, extensions: Extensions = NO_EXTENSIONS) -> None:
    """Look at the `tools` of a turn as `request.validate_create` does, but for their number: searches may find many.

    Raises:
        ClientError: 400 with `param` and `code` for the first thing that is wrong.
    """
    check(_Tools, {"tools": tools}, context=extensions)
    require_runnable(tools if isinstance(tools, list) else (), extensions)


def require_runnable(tools: Sequence[Json] | None, extensions: Extensions = NO_EXTENSIONS) -> None:
    """Raises ClientError when one of `tools` (of valid shape) is a hosted tool."""
    for index, tool in enumerate(tools or ()):
        if is_hosted(tool, extensions.tools):
            raise _not_run_here(tool, f"tools[{index}]", extensions)


def _not_run_here(tool: Json, at: str, extensions: Extensions) -> ClientError:
    kind, code = tool["type"], "invalid_value"
    if kind == "tool_search":
        message = "This gateway does not execute 'tool_search' itself: set 'execution' to 'client'."
        return ClientError(message, code=code, param=f"{at}.type")
    if kind == "shell":
        value, field, supported = _environment(tool), "environment.type", enumerated(tuple(_ENVIRONMENTS), "and")
    else:
        value, field = kind, "type"
        supported = enumerated(tuple(dict.fromkeys((*SHAPES, *extensions.tools))), "and")
    message = f"Invalid value: {quoted(value)}. Supported values are: {supported}."
    return ClientError(message, code=code, param=f"{at}.{field}")


def runnable(tools: Sequence[Json] | None, extensions: Extensions = NO_EXTENSIONS) -> tuple[list[Json], list[str]]:
    """The declarations that are no hosted tools, and the types of those that are, each once."""
    given = tools or ()
    hosted = dict.fromkeys(tool["type"] for tool in given if is_hosted(tool, extensions.tools))
    return [tool for tool in given if not is_hosted(tool, extensions.tools)], list(hosted)


def _require_unique(key: str, names: Iterable[str]) -> None:
    for name, count in Counter(names).items():
        if count > 1:
            message = f"Invalid '{{param}}': {quoted(name)} is the '{key}' of more than one tool. It must be unique."
            raise refused("invalid_value", message)


def declared(tools: Sequence[Json], kind: str, key: str) -> list[str]:
    """One field of every valid declaration of a kind, such as the `name` of every `function`."""
    return [tool[key] for tool in tools if tool["type"] == kind]


def called_names(tools: Iterable[Json]) -> set[str]:
    """Every name by which a model may call a client's tools, those inside namespaces included."""
    names: set[str] = set()
    for tool in tools:
        if tool["type"] in _CALLED_BY_NAME:
            names.add(tool["name"])
        elif tool["type"] == "namespace":
            names |= called_names(tool["tools"])
    return names


def public_tools(tools: Sequence[Json] | None) -> list[Json]:
    """What a response object shows of the declarations of a request, in their order, defaults filled in.

    A client's tool is shown as declared, an MCP server as `mcp_tool.public_mcp_tool` says. Of a type that is not known
    here nothing but its name is shown.
    """
    return [_public_tool(tool) for tool in tools or ()]


_DEFAULTS: dict[str, Json] = {
    "function": {"type": "function", "description": None, "name": None, "parameters": None, "strict": True},
    "custom": {"type": "custom", "description": None, "format": {"type": "text"}, "name": None},
    "namespace": {"type": "namespace", "description": "", "name": None, "tools": []},
    "tool_search": {"type": "tool_search", "description": None, "execution": "client", "parameters": None},
    "shell": {"type": "shell", "allowed_callers": None, "environment": None},
    "local_shell": {"type": "local_shell"},
    "apply_patch": {"type": "apply_patch", "allowed_callers": None},
}
"""The fields that the API shows of a client's tool, in its order."""


def _public_tool(tool: Json) -> Json:
    kind = tool.get("type")
    if kind == "mcp":
        return public_mcp_tool(tool)
    if kind not in _DEFAULTS:
        return {"type": kind}
    shown = {**_DEFAULTS[kind], **tool}
    if kind == "custom" and shown["format"] is None:
        shown["format"] = _DEFAULTS[kind]["format"]
    if kind == "shell" and shown["environment"] is not None:
        shown["environment"] = {"skills": None, **shown["environment"]}
    if kind == "namespace":
        shown["tools"] = public_tools(tool.get("tools"))
    return shown
