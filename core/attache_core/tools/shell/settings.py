"""The settings of a shell that the gateway runs: how commands are started, where, and all bounds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field, StringConstraints

from attache_core.tools.tool_type import ToolSettings

_NO_NUL = "^[^\\x00]*$"
_Word = Annotated[str, StringConstraints(min_length=1, pattern=_NO_NUL)]
_Value = Annotated[str, StringConstraints(pattern=_NO_NUL)]
_Variable = Annotated[str, StringConstraints(pattern="^[A-Za-z_][A-Za-z0-9_]*$")]


class ShellSettings(ToolSettings):
    """What commands may take. Limits on memory, files and processes are the system's own (setrlimit(2))."""

    command: tuple[_Word, ...] = Field(default=("/bin/sh", "-c"), min_length=1)
    """A program and its arguments, after which the text of the command comes as the last one. The place for a sandbox:
    without one, commands have all rights of the user that the gateway runs as."""

    folder: Path | None = None
    """Where the working folders of turns are made; the system's folder for temporary files unless given."""

    environment: dict[_Variable, _Value] = Field(default_factory=dict)
    """Variables for commands, besides `PATH`, `HOME` and `LANG`, or instead of these. They get no other of the
    gateway's. Whatever stands here, a model can print."""

    command_timeout_s: float = Field(default=50.0, gt=0, le=3600)
    """Seconds that one command may take; the model may ask for fewer. Beyond `call_timeout_s` of `tool_dispatch` the
    whole call is cut off, and nothing that it printed is told."""

    max_commands: int = Field(default=16, ge=1, le=1000)
    """Commands of one call."""

    max_parallel_commands: int = Field(default=8, ge=1, le=10_000)
    """Commands of all turns of a worker process that run at once; the others wait for their turn."""

    max_output_bytes: int = Field(default=64 * 1024, ge=256)
    """What is kept of each of the two outputs of a command, its beginning and its end; the model may ask for less."""

    max_written_bytes: int = Field(default=16 * 2**20, ge=1024)
    """What a command may write to both outputs; then it is killed."""

    max_memory_bytes: int = Field(default=4 * 2**30, ge=2**20)
    """Address space of each process."""

    max_file_bytes: int = Field(default=256 * 2**20, ge=0)
    """Size of each file that is written."""

    max_open_files: int = Field(default=256, ge=8)
    """Files that each process may have open."""

    max_processes: int = Field(default=1024, ge=1)
    """Processes and threads of the user that the gateway runs as, the gateway's own among them; not enforced for
    root."""
