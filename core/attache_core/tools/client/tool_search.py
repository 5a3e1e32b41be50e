"""The tool type `tool_search`, executed by the client, and the tools that it finds.

The model knows the search as a function. A tool with `defer_loading` is not told to it until a `tool_search_output` of
the conversation has it; from then on it is a tool like any other, also in turns that declare no tools. Where no search
is declared, nothing could ever find a deferred tool, so the model is told of it at once.

Source: API reference, "Tool search"; OpenAI's recordings.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from attache_core.json_codec import Json, encode
from attache_core.tools.client.action_call import ActionCall
from attache_core.tools.client.claim import Claim, claim_of
from attache_core.tools.function_items import function_call, function_call_output, pair_id
from attache_core.tools.function_tool import function_tool
from attache_core.tools.tool_type import ClientTool, ModelNames, Naming, Offer, OfferedTool, ToolType
from attache_core.types.tools import SHAPES

_DESCRIPTION = "Finds further tools for what is to be done; those that it finds can be called afterwards."
_PARAMETERS: Json = {
    "type": "object",
    "properties": {"query": {"type": "string", "description": "What a tool is needed for."}},
    "required": ["query"],
    "additionalProperties": False,
}


def tell_search_call(item: Json, position: int, names: ModelNames) -> list[Json]:
    """The function call that the model made; a search that OpenAI ran itself has no `call_id`, and passes."""
    del position
    call_id = pair_id(item)
    if call_id is None:
        return [item]
    name = names.name_of("tool_search", None, "tool_search")
    arguments = item.get("arguments")
    return [function_call(call_id, name, arguments if isinstance(arguments, str) else encode(arguments).decode())]


def tell_search_output(item: Json, position: int, names: ModelNames) -> list[Json]:
    """Its output: which tools were found, by the names under which the model knows them now."""
    del position
    call_id = pair_id(item)
    if call_id is None:
        return [item]
    found = [
        {"name": names.name_of(str(kind), owner, str(name), naming), "description": tool.get("description")}
        for tool, owner in _with_owners(item.get("tools") or ())
        for kind, name, naming in [(*_key(tool), Naming.LABELLED if owner else Naming.FREE)]
    ]
    return [function_call_output(call_id, encode({"tools": found}).decode())]


class ToolSearchType(ToolType):
    """A search for further tools, which the client executes."""

    shapes: ClassVar = {"tool_search": SHAPES["tool_search"]}
    tellers: ClassVar = {"tool_search_call": tell_search_call, "tool_search_output": tell_search_output}

    async def offer(self, declaration: Json) -> Offer:
        """One function, with the description and the parameters of the declaration where it has any."""
        description = declaration.get("description") or _DESCRIPTION
        function = function_tool("tool_search", description, declaration.get("parameters") or _PARAMETERS)
        return Offer((OfferedTool("tool_search", None, "tool_search", function, ClientTool(ToolSearchCall)),))


class ToolSearchCall(ActionCall):
    """One `tool_search_call`: its arguments are an object, and empty when it begins."""

    def item(self, call_id: object, arguments: object) -> Json:
        """Arguments that are no JSON are an empty object."""
        given = {} if arguments is None else arguments
        shown = {"status": "completed", "arguments": given, "call_id": call_id, "execution": "client"}
        return {"type": "tool_search_call", **shown}

    def begun(self, item: Json) -> Json:
        """Without arguments."""
        return {**item, "arguments": {}}


@dataclass(frozen=True, slots=True)
class LoadedTools:
    """The tools of a turn.

    Attributes:
        tools: the declarations, those of the request first, and after them what searches have found besides.
        found: the places in `tools` of what a search has loaded, what was found longest ago first.
    """

    tools: list[Json]
    found: tuple[int, ...]


def with_loaded_tools(declared: Sequence[Json], history: Iterable[Json]) -> LoadedTools:
    """The tools of a turn: those declared, and those that the searches of the conversation have found.

    What was found is no longer deferred. A declared tool keeps its place; the others follow in the order in which they
    were found, the last finding of each; a namespace has the members of all its findings. Of tools that a model would
    call by the same name the declared one is meant, else the last one that was found.
    """
    found: dict[Claim, Json] = {}
    ages: dict[Claim, int] = {}
    for age, tool in enumerate(_findings(history)):
        claim = claim_of(tool)
        found[claim] = _joined(found.get(claim), _loaded(tool))
        ages[claim] = age
    searches = any(tool.get("type") == "tool_search" for tool in declared)
    known = {claim_of(tool): tool for tool in declared}
    tools = [_loaded(tool) if not searches or claim_of(tool) in found else tool for tool in declared]
    tools += [tool for claim, tool in found.items() if claim not in known]
    loaded = [at for at, tool in enumerate(tools) if _was_loaded(known.get(claim_of(tool)), claim_of(tool) in found)]
    return LoadedTools(tools, tuple(sorted(loaded, key=lambda at: ages[claim_of(tools[at])])))


def _findings(history: Iterable[Json]) -> Iterator[Json]:
    for item in history:
        if item.get("type") == "tool_search_output":
            yield from item.get("tools") or ()


def _was_loaded(declared: Json | None, is_found: bool) -> bool:
    return is_found and (declared is None or declared != _loaded(declared))


def _key(tool: Json) -> tuple[object, object]:
    return tool.get("type"), tool.get("name")


def _joined(before: Json | None, found: Json) -> Json:
    if before is None or found.get("type") != "namespace":
        return found
    members = {_key(member): member for member in (*(before.get("tools") or ()), *(found.get("tools") or ()))}
    return {**found, "tools": list(members.values())}


def _loaded(tool: Json) -> Json:
    loaded = {name: value for name, value in tool.items() if name != "defer_loading"}
    if isinstance(loaded.get("tools"), list):
        loaded["tools"] = [_loaded(member) for member in loaded["tools"]]
    return loaded


def _with_owners(tools: Iterable[Json]) -> Iterable[tuple[Json, str | None]]:
    for tool in tools:
        if tool.get("type") == "namespace":
            yield from ((member, str(tool.get("name"))) for member in tool.get("tools") or ())
        else:
            yield tool, None
