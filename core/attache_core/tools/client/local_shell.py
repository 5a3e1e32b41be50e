"""The tool type `local_shell`: one command that the client runs.

Source: API reference, "Local shell tool"; the item is that of the `openai` package.
"""

from __future__ import annotations

from typing import ClassVar

from attache_core.json_codec import Json
from attache_core.tools.client.action_call import ActionCall, positive, text, texts
from attache_core.tools.function_items import ToldAs
from attache_core.tools.function_tool import function_tool
from attache_core.tools.tool_type import ClientTool, Offer, OfferedTool, ToolType
from attache_core.types.tools import SHAPES

_FUNCTION = function_tool(
    "local_shell",
    "Runs one command and gives what it printed.",
    {
        "type": "object",
        "properties": {
            "command": {
                "type": "array",
                "items": {"type": "string"},
                "description": "The program and its arguments, such as `['bash', '-lc', 'ls']`.",
            },
            "env": {
                "type": "object",
                "additionalProperties": {"type": "string"},
                "description": "Environment variables to set.",
            },
            "timeout_ms": {"type": ["integer", "null"], "description": "Milliseconds that it may take."},
            "user": {"type": ["string", "null"], "description": "The user to run it as."},
            "working_directory": {"type": ["string", "null"], "description": "Where to run it."},
        },
        "required": ["command"],
        "additionalProperties": False,
    },
)


class LocalShellType(ToolType):
    """A command that the client runs."""

    shapes: ClassVar = {"local_shell": SHAPES["local_shell"]}
    tellers: ClassVar = {
        "local_shell_call": ToldAs("local_shell", asked=("action",)),
        "local_shell_call_output": ToldAs("local_shell", answered=("output",)),
    }

    async def offer(self, declaration: Json) -> Offer:
        """One function."""
        return Offer((OfferedTool("local_shell", None, "local_shell", _FUNCTION, ClientTool(LocalShellCall)),))


class LocalShellCall(ActionCall):
    """One `local_shell_call`."""

    def item(self, call_id: object, arguments: object) -> Json:
        """An action always has a command, perhaps an empty one, and an environment."""
        given = arguments if isinstance(arguments, dict) else {}
        action = {
            "type": "exec",
            "command": texts(given.get("command")),
            "env": _variables(given.get("env")),
            "timeout_ms": positive(given.get("timeout_ms")),
            "user": text(given.get("user")),
            "working_directory": text(given.get("working_directory")),
        }
        return {"type": "local_shell_call", "status": "completed", "action": action, "call_id": call_id}


def _variables(value: object) -> dict[str, str]:
    given = value.items() if isinstance(value, dict) else ()
    return {name: content for name, content in given if isinstance(content, str)}
