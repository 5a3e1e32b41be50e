"""The tool type `shell`: commands that the client runs, in its own environment.

Where the operator grants another one, `tools.shell` is in its place. Source: API reference, "Shell tool"; the items and
events are those of the `openai` package.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from attache_core.events.model_events import ItemEvent
from attache_core.json_codec import Json
from attache_core.tools.client.action_call import NO_CALLER, ActionCall, positive, texts
from attache_core.tools.function_items import ToldAs
from attache_core.tools.function_tool import function_tool
from attache_core.tools.tool_type import ClientTool, Offer, OfferedTool, ToolType
from attache_core.types.tools import SHAPES

SHELL_FUNCTION = function_tool(
    "shell",
    "Runs commands in a shell and gives, for each, what it printed and how it ended.",
    {
        "type": "object",
        "properties": {
            "commands": {
                "type": "array",
                "items": {"type": "string"},
                "description": "The commands; they run independently of one another.",
            },
            "timeout_ms": {"type": ["integer", "null"], "description": "Milliseconds that each command may take."},
            "max_output_length": {
                "type": ["integer", "null"],
                "description": "Characters to return of what each command prints.",
            },
        },
        "required": ["commands"],
        "additionalProperties": False,
    },
)
"""What the model is told of a shell, whoever runs the commands."""

_LOCAL: Json = {"type": "local"}


class ShellType(ToolType):
    """Commands that the client runs."""

    shapes: ClassVar = {"shell": SHAPES["shell"]}
    tellers: ClassVar = {
        "shell_call": ToldAs("shell", asked=("action",)),
        "shell_call_output": ToldAs("shell", answered=("output",)),
    }

    async def offer(self, declaration: Json) -> Offer:
        """One function."""
        return Offer((OfferedTool("shell", None, "shell", SHELL_FUNCTION, ClientTool(ShellCall)),))


class ShellCall(ActionCall):
    """One `shell_call`; its commands are streamed one after the other."""

    def __init__(self, environment: Json = _LOCAL) -> None:
        """`environment` is where the commands are run, as the item shows it."""
        self._environment = environment

    def item(self, call_id: object, arguments: object) -> Json:
        """An action always has commands, perhaps none."""
        given = arguments if isinstance(arguments, dict) else {}
        action = {
            "commands": texts(given.get("commands")),
            "max_output_length": positive(given.get("max_output_length")),
            "timeout_ms": positive(given.get("timeout_ms")),
        }
        shown = {"action": action, "call_id": call_id, "environment": self._environment, **NO_CALLER}
        return {"type": "shell_call", "status": "completed", **shown}

    def begun(self, item: Json) -> Json:
        """Without its commands."""
        return {**item, "action": {**item["action"], "commands": []}}

    def events(self, key: str, item: Json) -> Iterable[ItemEvent]:
        """Each command begins, is said, and ends."""
        for index, command in enumerate(item["action"]["commands"]):
            yield ItemEvent(key, "response.shell_call_command.added", {"command": "", "command_index": index})
            yield ItemEvent(key, "response.shell_call_command.delta", {"command_index": index, "delta": command})
            yield ItemEvent(key, "response.shell_call_command.done", {"command": command, "command_index": index})
