"""The tool type `apply_patch`: a change of one file, which the client makes.

Source: API reference, "Apply patch tool"; the item is that of the `openai` package.
"""

from __future__ import annotations

from typing import ClassVar

from attache_core.json_codec import Json
from attache_core.tools.client.action_call import NO_CALLER, ActionCall, text
from attache_core.tools.function_items import ToldAs
from attache_core.tools.function_tool import function_tool
from attache_core.tools.tool_type import ClientTool, Offer, OfferedTool, ToolType
from attache_core.types.tools import SHAPES

OPERATIONS = ("create_file", "update_file", "delete_file")

_FUNCTION = function_tool(
    "apply_patch",
    "Creates, changes or deletes one file. The diff of a new file has every line with a '+' before it; that of a "
    "change has '@@' lines that say where, and lines with ' ', '-' or '+' before them.",
    {
        "type": "object",
        "properties": {
            "type": {"type": "string", "enum": list(OPERATIONS)},
            "path": {"type": "string", "description": "The file, relative to the working directory."},
            "diff": {"type": "string", "description": "What changes; leave it out to delete the file."},
        },
        "required": ["type", "path"],
        "additionalProperties": False,
    },
)


class ApplyPatchType(ToolType):
    """Changes of files that the client makes."""

    shapes: ClassVar = {"apply_patch": SHAPES["apply_patch"]}
    tellers: ClassVar = {
        "apply_patch_call": ToldAs("apply_patch", asked=("operation",)),
        "apply_patch_call_output": ToldAs("apply_patch", answered=("status", "output")),
    }

    async def offer(self, declaration: Json) -> Offer:
        """One function."""
        return Offer((OfferedTool("apply_patch", None, "apply_patch", _FUNCTION, ClientTool(ApplyPatchCall)),))


class ApplyPatchCall(ActionCall):
    """One `apply_patch_call`."""

    def item(self, call_id: object, arguments: object) -> Json:
        """An operation always has a type and a path, and a diff unless it deletes."""
        given = arguments if isinstance(arguments, dict) else {}
        kind = given.get("type") if given.get("type") in OPERATIONS else "update_file"
        operation: Json = {"type": kind, "path": text(given.get("path")) or ""}
        if kind != "delete_file":
            operation["diff"] = text(given.get("diff")) or ""
        shown = {"call_id": call_id, "operation": operation, **NO_CALLER}
        return {"type": "apply_patch_call", "status": "completed", **shown}
