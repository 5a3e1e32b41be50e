"""A function of the Responses API, made of what somebody else calls a tool. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from attache_core.json_codec import Json

_NO_PARAMETERS: Json = {"type": "object", "properties": {}}


def function_tool(name: str, description: str | None, parameters: object) -> Json:
    """A tool as a function. The schema stays as it is, where it is one."""
    schema = dict(parameters) if isinstance(parameters, Mapping) and parameters else _NO_PARAMETERS
    if schema.get("required", ()) is None:  # some servers write null for "nothing"; it is no JSON Schema
        schema = {key: value for key, value in schema.items() if key != "required"}
    return {"type": "function", "name": name, "description": description, "parameters": schema, "strict": False}
