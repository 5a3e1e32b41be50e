"""The tool type `shell` where the operator grants it: commands that the gateway runs.

A shell in the client's own environment stays the client's. Thin: what a declaration means, how a command is run and
what a client sees of a call are its neighbours' to say.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from attache_core.errors import ClientError
from attache_core.events.model_events import ModelEvent
from attache_core.json_codec import Json
from attache_core.tools.client.shell import SHELL_FUNCTION, ShellType
from attache_core.tools.gateway_tool import CallMade, CallResult, GatewayTool
from attache_core.tools.shell.declaration import GrantedShellTool, container_reference, is_gateways, public_shell_tool
from attache_core.tools.shell.items import call_life, output_life
from attache_core.tools.shell.settings import ShellSettings
from attache_core.tools.shell.shell import Shell
from attache_core.tools.shell.workspace import Workspace
from attache_core.tools.tool_type import Offer, OfferedTool
from attache_core.types.ids import new_id

_DESCRIPTION = (
    "Runs commands in a shell, all at the same time, and gives, for each, what it printed and how it ended. "
    "They share a working folder, which lasts until you have given your final answer; nothing else is kept between "
    "calls, and what still runs when a command has ended is killed."
)


@dataclass(frozen=True, slots=True)
class ShellCalls(GatewayTool):
    """Executes the calls of one turn."""

    shell: Shell
    workspace: Workspace
    environment: Json

    async def call(self, arguments: Json) -> CallResult:
        """Run the commands."""
        return await self.shell.run(arguments, self.workspace)

    def begun(self, call: CallMade) -> list[ModelEvent]:
        """The whole `shell_call`."""
        return call_life(call, self.environment)

    def ended(self, call: CallMade, result: CallResult) -> list[ModelEvent]:
        """The `shell_call_output`."""
        return output_life(call, result)


class GrantedShellType(ShellType):
    """A shell, for the life of a worker process."""

    shapes: ClassVar = {"shell": GrantedShellTool}
    settings_type = ShellSettings

    def __init__(self, settings: ShellSettings | None = None) -> None:
        super().__init__(settings)
        self._given = settings or ShellSettings()
        self._shell = Shell(self._given)

    def public(self, declaration: Json) -> Json:
        """The declaration with its defaults."""
        return public_shell_tool(declaration) if is_gateways(declaration) else super().public(declaration)

    def check_together(self, declarations: Sequence[Json]) -> None:
        """Refuse two of them: the model could not tell which is which."""
        if len(declarations) > 1:
            message = "Invalid 'tools': a request may declare a shell only once."
            raise ClientError(message, param="tools", code="invalid_value")

    async def offer(self, declaration: Json) -> Offer:
        """One function."""
        if not is_gateways(declaration):
            return await super().offer(declaration)
        workspace = Workspace(self._given.folder)
        calls = ShellCalls(self._shell, workspace, container_reference(new_id("cntr")))
        function = {**SHELL_FUNCTION, "description": _DESCRIPTION}
        return Offer((OfferedTool("shell", None, "shell", function, calls),), release=workspace.remove)
