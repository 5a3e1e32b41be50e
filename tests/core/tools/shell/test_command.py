"""Commands, run by a real shell: what comes of them, and that nothing of them is left."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from attache_core.json_codec import Json, decode
from attache_core.tools.gateway_tool import CallResult
from attache_core.tools.shell.command import Bounds, run_command
from attache_core.tools.shell.settings import ShellSettings
from attache_core.tools.shell.shell import MAX_COMMAND_BYTES, Shell
from attache_core.tools.shell.workspace import Workspace

WAIT_S = 5.0
CANARY = "canary-command-27fe"


async def run(tmp_path: Path, *commands: str, settings: ShellSettings | None = None, **fields: object) -> list[Json]:
    """What the `shell_call_output` holds, without what says nothing."""
    result = await call(tmp_path, {"commands": list(commands), **fields}, settings)
    assert result.output is not None, result.error
    outputs: list[Json] = decode(result.output)
    assert all(output.pop("created_by") is None for output in outputs)
    return outputs


async def call(tmp_path: Path, arguments: Json, settings: ShellSettings | None = None) -> CallResult:
    workspace = Workspace(tmp_path)
    async with asyncio.timeout(WAIT_S):
        result = await Shell(settings or ShellSettings()).run(arguments, workspace)
    await workspace.remove()
    assert files(tmp_path) == []
    return result


def files(folder: Path) -> list[Path]:
    return list(folder.iterdir())


def mode_of(folder: Path) -> int:
    return folder.stat().st_mode & 0o777


def lives(pid: int) -> bool:
    return Path("/proc", str(pid)).exists()


def ended(stdout: str = "", stderr: str = "", exit_code: int = 0) -> Json:
    return {"stdout": stdout, "stderr": stderr, "outcome": {"type": "exit", "exit_code": exit_code}}


async def wait_until_dead(pid: int) -> None:
    async with asyncio.timeout(WAIT_S):
        while lives(pid):  # noqa: ASYNC110 - a process is only ever asked
            await asyncio.sleep(0.01)


async def test_outputs_are_in_the_order_of_the_commands_whichever_ends_first(tmp_path: Path) -> None:
    said = (
        "until [ -e f ]; do sleep 0.01; done; echo a",
        "echo b >&2; touch f; exit 3",
        "kill -9 $$",
        "no-such-program",
    )
    outputs = await run(tmp_path, *said)
    assert outputs[:3] == [ended("a\n"), ended("", "b\n", 3), ended(exit_code=137)]
    assert outputs[3]["outcome"] == {"type": "exit", "exit_code": 127}
    assert "no-such-program" in outputs[3]["stderr"]


async def test_command_gets_no_variable_and_no_file_of_this_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROVIDER_API_KEY", CANARY)
    inherited = os.open("/dev/null", os.O_RDONLY)
    os.set_inheritable(inherited, True)
    try:
        settings = ShellSettings(environment={"GREETING": "hello", "LANG": "C"})
        [seen] = await run(tmp_path, "env; readlink /proc/self/fd/*; cat; pwd -P", settings=settings)
    finally:
        os.close(inherited)
    *variables, null, out, err, folder = seen["stdout"].splitlines()
    given = dict(line.split("=", 1) for line in variables)
    assert given.keys() - {"PWD", "_"} == {"PATH", "HOME", "LANG", "GREETING"}
    assert (given["LANG"], given["GREETING"], given["HOME"]) == ("C", "hello", folder)
    assert (null, out.partition(":")[0], err.partition(":")[0]) == ("/dev/null", "pipe", "pipe")
    assert CANARY not in seen["stdout"]


async def test_time_of_a_command_is_the_models_and_never_more_than_the_operators(tmp_path: Path) -> None:
    slow = ["echo begun; sleep 1000", "true"]
    timeout = {"stdout": "begun\n", "stderr": "", "outcome": {"type": "timeout"}}
    assert await run(tmp_path, *slow, timeout_ms=500) == [timeout, ended()]
    settings = ShellSettings(command_timeout_s=0.5)
    assert await run(tmp_path, *slow, timeout_ms=10**9, settings=settings) == [timeout, ended()]


@pytest.mark.parametrize("ends", ["", "; sleep 1000", "; kill -9 $$"], ids=["by itself", "in time", "killed"])
async def test_what_runs_on_in_the_background_ends_with_its_command(tmp_path: Path, ends: str) -> None:
    started = (
        "setsid sh -c 'sleep 1000 & echo $!; wait' & (nohup sleep 1000 & echo $!) & wait_for=$!; echo $!; sleep 0.2"
    )
    [output] = await run(tmp_path, f"{started}{ends}", timeout_ms=2000)
    pids = [int(line) for line in output["stdout"].split()]
    assert len(pids) == 3
    for pid in pids:
        await wait_until_dead(pid)


async def test_call_that_is_cancelled_leaves_no_process(tmp_path: Path) -> None:
    shell, workspace, pids = Shell(ShellSettings()), Workspace(tmp_path), tmp_path / "pids"
    async with asyncio.timeout(WAIT_S), asyncio.TaskGroup() as tasks:
        said = f"setsid sleep 1000 & echo $! $$ $PPID > {pids}.new; mv {pids}.new {pids}; wait"
        calling = tasks.create_task(shell.run({"commands": [said]}, workspace))
        while not pids.exists():  # noqa: ASYNC110 - a file is only ever asked
            await asyncio.sleep(0.01)
        calling.cancel()
    assert [pid for pid in pids.read_text().split() if lives(int(pid))] == []
    await workspace.remove()


async def test_second_cancellation_leaves_no_process_either(tmp_path: Path) -> None:
    """The keeper is held up, so that it is still at work when the second one comes."""
    folder, pids = tmp_path / "home", tmp_path / "pids"
    folder.mkdir()
    said = f"setsid sleep 1000 & echo $! $$ $PPID > {pids}.new; mv {pids}.new {pids}; wait"
    async with asyncio.timeout(WAIT_S), asyncio.TaskGroup() as tasks:
        running = tasks.create_task(run_command(said, folder, ShellSettings(), Bounds(1000, 1000)))
        while not pids.exists():  # noqa: ASYNC110 - a file is only ever asked
            await asyncio.sleep(0.01)
        for _ in range(2):
            running.cancel()
            await asyncio.sleep(0)
    for pid in pids.read_text().split():
        await wait_until_dead(int(pid))


async def test_command_that_stops_its_keeper_leaves_no_process(tmp_path: Path) -> None:
    stopping = "setsid sleep 1000 & echo $! $$ $PPID; kill -STOP $PPID; wait"
    [output] = await run(tmp_path, stopping, timeout_ms=500)
    assert output["outcome"] == {"type": "timeout"}
    for pid in output["stdout"].split():
        await wait_until_dead(int(pid))


async def test_many_processes_are_ended_within_the_time_for_it(tmp_path: Path) -> None:
    many = "i=0; while [ $i -lt 400 ]; do sleep 1000 & echo $!; i=$((i+1)); done; wait"
    [output] = await run(tmp_path, many, timeout_ms=2000)
    assert [pid for pid in output["stdout"].split() if lives(int(pid))] == []


async def test_output_is_kept_in_part_and_a_flood_is_killed(tmp_path: Path) -> None:
    settings = ShellSettings(max_output_bytes=256, max_written_bytes=100_000)
    [much, flood] = await run(tmp_path, "seq 1000", "yes", settings=settings)
    assert much["stdout"].startswith("1\n2\n3\n")
    assert much["stdout"].endswith("999\n1000\n")
    assert "\n[3637 bytes left out]\n" in much["stdout"]
    assert flood["outcome"] == {"type": "exit", "exit_code": 137}
    assert flood["stderr"] == "[killed: it wrote more than 100000 bytes]\n"
    [asked_for] = await run(tmp_path, "seq 1000", max_output_length=10)
    assert asked_for == ended("1\n2\n3\n"[:5] + "\n[3883 bytes left out]\n" + "1000\n")


async def test_bytes_that_are_no_text_are_replaced(tmp_path: Path) -> None:
    assert await run(tmp_path, r"printf 'a\000b\377c\303'") == [ended("a\ufffdb\ufffdc\ufffd")]


async def test_limits_are_those_of_the_system(tmp_path: Path) -> None:
    settings = ShellSettings(max_memory_bytes=2**28, max_file_bytes=1024, max_open_files=32, max_processes=77)
    said = ("ulimit -v; ulimit -n; ulimit -c; ulimit -p || ulimit -u", "head -c 5000 /dev/zero > f; wc -c < f")
    limits, big = await run(tmp_path, *said, settings=settings)
    assert limits["stdout"].split() == [str(2**18), "32", "0", "77"]
    assert big["stdout"] == "1024\n"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({}, "A call has 1 to 2 commands, not 0. None was run."),
        ({"commands": ["true"] * 3}, "A call has 1 to 2 commands, not 3. None was run."),
        ({"commands": ["true", "echo \0"]}, "A command has 98304 bytes at most, and no NUL. None was run."),
        ({"commands": ["#" * (MAX_COMMAND_BYTES + 1)]}, "A command has 98304 bytes at most, and no NUL. None was run."),
        ({"commands": ["echo \ud83d"]}, "A command has half a character in it. None was run."),
    ],
)
async def test_call_that_means_no_commands_is_told_why(tmp_path: Path, arguments: Json, told: str) -> None:
    result = await call(tmp_path, arguments, ShellSettings(max_commands=2))
    assert result.model_text == f"The tool call failed: {told}"


async def test_longest_command_runs(tmp_path: Path) -> None:
    assert await run(tmp_path, "true #".ljust(MAX_COMMAND_BYTES, "x")) == [ended()]


async def test_folder_that_cannot_be_made_is_told_without_its_name(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "missing")
    result = await Shell(ShellSettings()).run({"commands": ["true"]}, workspace)
    assert result.model_text == "The gateway cannot run commands at the moment."


async def test_operators_program_gets_the_command_as_its_last_argument(tmp_path: Path) -> None:
    settings = ShellSettings(command=("/bin/echo", "-n", "sandboxed:"))
    assert await run(tmp_path, "rm -rf /", settings=settings) == [ended("sandboxed: rm -rf /")]
    [missing] = await run(tmp_path, "true", settings=ShellSettings(command=("/no/such/sandbox",)))
    assert missing == ended("", "/no/such/sandbox cannot be run: No such file or directory\n", 127)


async def test_calls_of_a_turn_share_a_folder_that_goes_with_all_that_is_in_it(tmp_path: Path) -> None:
    shell, workspace = Shell(ShellSettings()), Workspace(tmp_path)
    kept = tmp_path / "kept"
    kept.mkdir()
    deep = "i=0; while [ $i -lt 1500 ]; do mkdir d && cd d; i=$((i+1)); done"
    await shell.run(
        {"commands": ["echo here > f", f"ln -s {kept} link; mkdir closed; touch closed/x; chmod 0 closed", deep]},
        workspace,
    )
    found = await shell.run({"commands": ["cat f"]}, workspace)
    assert decode(found.output or "")[0]["stdout"] == "here\n"
    assert mode_of(workspace.folder()) == 0o700
    await workspace.remove()
    assert files(tmp_path) == [kept]


async def test_folder_that_a_command_removed_is_made_again_and_what_stands_in_its_place_is_not_followed(
    tmp_path: Path,
) -> None:
    shell, workspace = Shell(ShellSettings()), Workspace(tmp_path)
    kept = tmp_path / "kept"
    kept.mkdir(mode=0o500)
    await shell.run({"commands": ["rm -rf ~"]}, workspace)
    found = await shell.run({"commands": [f"ls ~; cd /; rmdir ~; ln -s {kept} ~"]}, workspace)
    assert decode(found.output or "")[0]["outcome"] == {"type": "exit", "exit_code": 0}
    await workspace.remove()
    assert (files(tmp_path), mode_of(kept)) == ([kept], 0o500)


async def test_commands_above_the_workers_bound_wait_for_their_turn(tmp_path: Path) -> None:
    one_at_a_time = ShellSettings(max_parallel_commands=1)
    said = "mkdir busy || exit 9; sleep 0.05; rmdir busy"
    assert await run(tmp_path, *[said] * 3, settings=one_at_a_time) == [ended()] * 3
