"""Calls of the shell: which commands a call means, and that all of them together stay within the worker's bounds.

Unaware of how a command is run and of what a client sees. What goes wrong is told to the model in our words.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Sequence
from pathlib import Path

from attache_core import json_codec
from attache_core.json_codec import Json
from attache_core.tools.call_errors import INVALID_PARAMS, execution_error, protocol_error
from attache_core.tools.client.action_call import positive, texts
from attache_core.tools.gateway_tool import CallResult
from attache_core.tools.shell.command import Bounds, CommandOutput, run_command
from attache_core.tools.shell.settings import ShellSettings
from attache_core.tools.shell.workspace import Workspace
from attache_core.tools.task_scope import task_scope

MAX_COMMAND_BYTES = 96 * 1024
"""One command; the system takes no argument of 128 KiB (`execve(2)`)."""

_log = logging.getLogger(__name__)


class Shell:
    """Runs commands for all turns of a worker process."""

    def __init__(self, settings: ShellSettings) -> None:
        self._settings = settings
        self._slots = asyncio.Semaphore(settings.max_parallel_commands)

    async def run(self, arguments: Json, workspace: Workspace) -> CallResult:
        """Run the commands of one call, at the same time; their outputs come in the order of the commands.

        Cancelling the caller kills them. The result's `output` is a JSON array, as in a `shell_call_output`.
        """
        commands = texts(arguments.get("commands"))
        try:
            self._check(commands)
        except ValueError as error:
            return CallResult(None, protocol_error(INVALID_PARAMS, str(error)))
        bounds = self._bounds(arguments)
        try:
            folder = workspace.folder()
            async with task_scope() as tasks:
                running = [tasks.start(self._run(command, folder, bounds)) for command in commands]
                outputs = [_result(await one) for one in running]
        except OSError as error:
            _log.error("A command could not be started: %s", error.strerror)
            text = "The gateway cannot run commands at the moment."
            return CallResult(None, execution_error([{"type": "text", "text": text}]))
        return CallResult(json_codec.encode([output.public for output in outputs]).decode())

    async def _run(self, command: str, folder: Path, bounds: Bounds) -> CommandOutput | OSError:
        """A task that fails would hide its error in a group of errors."""
        try:
            async with self._slots:
                return await run_command(command, folder, self._settings, bounds)
        except OSError as error:
            return error

    def _bounds(self, arguments: Json) -> Bounds:
        """What the model asks for, where that is less than the settings allow."""
        wanted_ms, wanted_length = positive(arguments.get("timeout_ms")), positive(arguments.get("max_output_length"))
        timeout_s, kept = self._settings.command_timeout_s, self._settings.max_output_bytes
        return Bounds(
            timeout_s if wanted_ms is None else min(timeout_s, wanted_ms / 1000),
            kept if wanted_length is None else min(kept, wanted_length),
        )

    def _check(self, commands: Sequence[str]) -> None:
        """Raises ValueError, whose text is for the model."""
        bound = self._settings.max_commands
        if not 1 <= len(commands) <= bound:
            raise ValueError(f"A call has 1 to {bound} commands, not {len(commands)}. None was run.")
        for command in commands:
            if "\0" in command or len(_encoded(command)) > MAX_COMMAND_BYTES:
                raise ValueError(f"A command has {MAX_COMMAND_BYTES} bytes at most, and no NUL. None was run.")


def _encoded(command: str) -> bytes:
    try:
        return os.fsencode(command)
    except UnicodeEncodeError:
        raise ValueError("A command has half a character in it. None was run.") from None


def _result(ended: CommandOutput | OSError) -> CommandOutput:
    if isinstance(ended, OSError):
        raise ended
    return ended
