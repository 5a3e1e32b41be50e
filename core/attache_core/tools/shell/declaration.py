"""What a request declares of a shell that the gateway runs. Pure.

Invariant: nothing that is declared is ignored. How the shell is set up is the operator's to say, so what a client would
have of a container of OpenAI's is refused by name. Source: API reference, "Shell tool", `environment`.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import PlainValidator

from attache_core.json_codec import Json
from attache_core.types.shape import Shape, json_object, named_by_type
from attache_core.types.tools import LocalEnvironment
from attache_core.types.violation import refused

CONTAINER_AUTO = "container_auto"
_REFERENCE = "container_reference"


def _nothing(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    if value in (None, []):
        return value
    raise refused("unsupported_value", "Unsupported '{param}': the operator sets up the gateway's shell. Leave it out.")


_Nothing = Annotated[Any, PlainValidator(_nothing)]


class ContainerAuto(Shape):
    """The shell as the operator has set it up."""

    file_ids: _Nothing = None
    memory_limit: _Nothing = None
    network_policy: _Nothing = None
    skills: _Nothing = None


_check_known = named_by_type({"local": LocalEnvironment, CONTAINER_AUTO: ContainerAuto})


def _check_environment(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    if json_object(value).get("type") == _REFERENCE:
        message = "The gateway keeps no container after a turn: set 'environment' to {'type': 'container_auto'}."
        raise refused("unsupported_value", message, ("type",))
    return _check_known(value)


class GrantedShellTool(Shape):
    """Commands that the client runs, or the gateway."""

    environment: Annotated[Any, PlainValidator(_check_environment)] | None = None


def is_gateways(declaration: Json) -> bool:
    """Whether the gateway runs the commands, not the client."""
    return (declaration.get("environment") or {}).get("type") == CONTAINER_AUTO


def public_shell_tool(declaration: Json) -> Json:
    """What a response shows of a declaration whose commands the gateway runs."""
    empty = {"type": CONTAINER_AUTO, "file_ids": None, "memory_limit": None, "network_policy": None, "skills": None}
    return {
        "type": "shell",
        "allowed_callers": None,
        **declaration,
        "environment": {**empty, **declaration["environment"]},
    }


def container_reference(container_id: str) -> Json:
    """The environment that the items of calls show."""
    return {"type": _REFERENCE, "container_id": container_id}
