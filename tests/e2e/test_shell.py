"""Commands that the gateway runs, where its operator grants a shell."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from attache_core.json_codec import Json, decode
from attache_core.testing.model_script import call, function_calls, text
from e2e.stage import WAIT_S, Stage, check, open_stage

SHELL: Json = {"type": "shell", "environment": {"type": "container_auto"}}
CANARY = "canary-shell-83aa"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def granted(placement: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    folder = tmp_path_factory.mktemp("shell")
    section = f"shell: {{folder: '{folder}', environment: {{GREETING: hello}}}}\n"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PROVIDER_API_KEY", CANARY)
        async with open_stage(placement, folder, gateway_yaml=section) as stage:
            yield stage


def commands(*said: str, **fields: Any) -> Any:
    return call("shell", {"commands": list(said), **fields})


def folders(stage: Stage) -> list[Path]:
    """The working folders that there are."""
    return list(stage.storage.parent.glob("attache-shell-*"))


def output(stdout: str, stderr: str = "", exit_code: int = 0) -> Json:
    return {
        "created_by": None,
        "outcome": {"type": "exit", "exit_code": exit_code},
        "stderr": stderr,
        "stdout": stdout,
    }


async def wait_until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(WAIT_S):
        while not holds():  # noqa: ASYNC110 - processes and files are only ever asked
            await asyncio.sleep(0.01)


def sleeps(pids: Path) -> str:
    """A command that writes down the ids of its processes, one of which is in a session of its own, and sleeps."""
    return f"setsid sleep 1000 & echo $! $$ > {pids}.new; mv {pids}.new {pids}; wait"


def lives(pid: str) -> bool:
    return Path("/proc", pid).exists()


async def test_commands_run_here_and_a_call_and_its_output_are_two_items(granted: Stage, stream: bool) -> None:
    granted.model.play(
        function_calls(commands("echo $GREETING | tee f", "echo no >&2; exit 3", max_output_length=500)),
        function_calls(commands("cat f")),
        text("Done."),
    )
    answer = check(await granted.ask(input="Go", tools=[SHELL], tool_choice={"type": "shell"}, stream=stream))

    made, printed, again, found, said = answer.body["output"]
    assert made["action"]["commands"] == ["echo $GREETING | tee f", "echo no >&2; exit 3"]
    assert printed["output"] == [output("hello\n"), output("", "no\n", 3)]
    assert (printed["call_id"], printed["max_output_length"]) == (made["call_id"], 500)
    assert (made["environment"]["type"], again["environment"]) == ("container_reference", made["environment"])
    assert found["output"] == [output("hello\n")]
    assert (said["type"], answer.text, folders(granted)) == ("message", "Done.", [])
    assert answer.body["tools"][0]["environment"]["type"] == "container_auto"
    assert granted.model.asked[0]["tool_choice"] == {"type": "function", "name": "shell"}
    assert [tool["type"] for tool in granted.model.asked[0]["tools"]] == ["function"]
    assert (await granted.get(f"/v1/responses/{answer.body['id']}")).json() == answer.body
    if stream:
        call_events = [event["type"] for event in answer.events if event.get("output_index") == 2]
        assert call_events == [
            "response.output_item.added",
            "response.shell_call_command.added",
            "response.shell_call_command.delta",
            "response.shell_call_command.done",
            "response.output_item.done",
        ]
        assert [event["type"] for event in answer.events if event.get("output_index") == 3] == [
            "response.output_item.added",
            "response.shell_call_output_content.delta",
            "response.shell_call_output_content.done",
            "response.output_item.done",
        ]


async def test_what_was_printed_is_told_in_the_next_round_and_turn(granted: Stage, stream: bool) -> None:
    granted.model.play(function_calls(commands("echo $GREETING")), text("Done."), text("As I said."))
    first = check(await granted.ask(input="Go", tools=[SHELL], stream=stream))

    check(await granted.ask(input="So?", previous_response_id=first.body["id"], stream=stream))

    for asked in granted.model.asked[1:]:
        _, made, told, *_ = asked["input"]
        assert decode(made["arguments"])["commands"] == ["echo $GREETING"]
        assert (told["type"], told["call_id"]) == ("function_call_output", made["call_id"])
        assert decode(told["output"])["output"] == [output("hello\n")]


async def test_commands_get_nothing_of_the_gateways_environment(granted: Stage, stream: bool) -> None:
    granted.model.play(function_calls(commands("env; ls /proc/self/fd | wc -l; cat")), text("Done."))
    answer = check(await granted.ask(input="Go", tools=[SHELL], stream=stream))

    *variables, files = answer.body["output"][1]["output"][0]["stdout"].splitlines()
    assert {line.partition("=")[0] for line in variables} - {"_"} == {"PATH", "HOME", "LANG", "PWD", "GREETING"}
    assert files == "4"  # its three, and the one by which `ls` reads the list
    assert CANARY not in repr([answer.body, answer.events, granted.model.asked])


async def test_calls_that_cannot_run_are_told_and_the_turn_goes_on(granted: Stage, stream: bool) -> None:
    granted.model.play(
        function_calls(call("shell", {}), commands(), commands("sleep 100", timeout_ms=50)), text("Sorry.")
    )
    answer = check(await granted.ask(input="Go", tools=[SHELL], stream=stream))

    _, broken, _, empty, _, slow, said = answer.body["output"]
    assert "'commands' is missing" in broken["output"][0]["stderr"]
    assert "1 to 16 commands" in empty["output"][0]["stderr"]
    assert [item["status"] for item in (broken, empty, slow)] == ["incomplete", "incomplete", "completed"]
    assert (slow["output"][0]["outcome"], said["type"]) == ({"type": "timeout"}, "message")


async def test_shell_of_the_client_stays_the_clients_where_one_is_granted(granted: Stage, stream: bool) -> None:
    for tool in ({"type": "shell"}, {"type": "shell", "environment": {"type": "local"}}):
        granted.model.play(function_calls(commands("ls")))
        answer = check(await granted.ask(input="Go", tools=[tool], stream=stream))
        [made] = answer.body["output"]
        assert (made["type"], made["environment"]) == ("shell_call", {"type": "local"})


@pytest.mark.parametrize(
    ("environment", "param"),
    [
        ({"type": "container_reference", "container_id": "cntr_1"}, "tools[0].environment.type"),
        ({"type": "container_auto", "network_policy": {"type": "disabled"}}, "tools[0].environment.network_policy"),
        ({"type": "container_auto", "skills": [{}]}, "tools[0].environment.skills"),
        ({"type": "container_auto", "memory_limit": "4g"}, "tools[0].environment.memory_limit"),
        ({"type": "container_auto", "file_ids": ["file_1"]}, "tools[0].environment.file_ids"),
        ({"type": "elsewhere"}, "tools[0].environment.type"),
    ],
)
async def test_what_no_operator_granted_is_refused_by_name(
    granted: Stage, stream: bool, environment: Json, param: str
) -> None:
    answer = await granted.ask(input="Go", tools=[{"type": "shell", "environment": environment}], stream=stream)
    assert (answer.status, answer.body["error"]["param"]) == (400, param)


async def test_without_a_grant_nothing_runs(stage: Stage, stream: bool) -> None:
    answer = await stage.ask(input="Go", tools=[SHELL], stream=stream)
    assert (answer.status, answer.body["error"]["param"]) == (400, "tools[0].environment.type")
    assert stage.model.asked == []


async def test_client_that_goes_away_leaves_no_process_and_no_folder(granted: Stage, stream: bool) -> None:
    pids = granted.storage.parent / "pids"
    pids.unlink(missing_ok=True)
    granted.model.play(function_calls(commands(sleeps(pids))))

    async with asyncio.TaskGroup() as tasks:
        asking = tasks.create_task(granted.ask(input="Go", tools=[SHELL], stream=stream))
        await wait_until(pids.exists)
        assert len(folders(granted)) == 1
        asking.cancel()

    await wait_until(lambda: not any(map(lives, pids.read_text().split())))
    await wait_until(lambda: not folders(granted))


async def test_worker_that_is_killed_leaves_no_process(placement: str, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    async with (
        open_stage(placement, tmp_path, gateway_yaml=f"shell: {{folder: '{tmp_path}'}}\n") as stage,
        asyncio.TaskGroup() as tasks,
    ):
        stage.model.play(function_calls(commands(sleeps(pids))))
        asking = tasks.create_task(stage.ask(input="Go", tools=[SHELL]))
        await wait_until(pids.exists)

        [worker] = stage.gateway.workers.pids
        os.kill(worker, signal.SIGKILL)

        await wait_until(lambda: not any(map(lives, pids.read_text().split())))
        answer = await asking
        assert answer.status >= 500
