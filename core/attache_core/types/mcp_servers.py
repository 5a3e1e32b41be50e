"""Which MCP servers a request may use: those that the gateway's operator named, and perhaps others by their URL.

Knows labels only; is unaware of where a server is and of credentials. Invariant: what a client says of a server that
the operator named never changes where it is or who asks there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pydantic_core import PydanticCustomError

from attache_core.json_codec import Json
from attache_core.types.violation import enumerated, quoted, refused, wrong_value

_OPERATORS = ("server_url", "authorization", "headers")
"""What is the operator's to say of a server that the operator named."""


@dataclass(frozen=True, slots=True)
class KnownServers:
    """The servers that the gateway knows by itself.

    Attributes:
        labels: the `server_label` of each.
        only_these: whether a request may bring no others.
    """

    labels: tuple[str, ...] = ()
    only_these: bool = False


NO_SERVERS = KnownServers()


def require_reachable(tools: Sequence[Json], known: KnownServers) -> None:
    """Look at declarations of valid shape; raises what pydantic expects of a check."""
    for index, tool in _declared(tools):
        if tool["server_label"] in known.labels:
            _require_nothing_of_the_operator(tool, index)
        elif known.only_these:
            raise _unknown(tool, index, known)
        elif tool.get("server_url") is None:
            raise _without_url(index, known)


def _declared(tools: Sequence[Json]) -> Iterator[tuple[int, Json]]:
    return ((index, tool) for index, tool in enumerate(tools) if tool["type"] == "mcp")


def _require_nothing_of_the_operator(tool: Json, index: int) -> None:
    given = next((name for name in _OPERATORS if tool.get(name) is not None), None)
    if given is not None:
        label = quoted(tool["server_label"])
        message = f"Unsupported parameter: '{{param}}'. The gateway itself knows {label}, its URL and its credentials."
        raise refused("unsupported_parameter", message, (index, given))


def _unknown(tool: Json, index: int, known: KnownServers) -> PydanticCustomError:
    at = (index, "server_label")
    if not known.labels:
        return refused("unsupported_value", "Invalid '{param}': this gateway uses no MCP servers.", at)
    return wrong_value(tool["server_label"], known.labels, at)


def _without_url(index: int, known: KnownServers) -> PydanticCustomError:
    message = "Missing required parameter: '{param}'."
    if known.labels:
        message += f" The 'server_label' of a server that needs none is {enumerated(known.labels, 'or')}."
    return refused("missing_required_parameter", message, (index, "server_url"))
