"""Codex CLI with the gateway as its model provider, set up as `examples/codex` says, in a project of its own.

What Codex does is real: it runs commands and changes files. What the model says is scripted.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio
import yaml

from attache_core.json_codec import Json, decode, encode
from attache_core.testing.model_script import Reply, call, function_calls, text
from attache_core.testing.model_server import ReceivedRequest
from attache_core.testing.search_server import running_search_server, web_json
from e2e.node_packages import install_packages
from e2e.stage import WAIT_S, Stage, open_stage

PACKAGE = Path(__file__).parents[1] / "codex"
RECIPE = Path(__file__).parents[2] / "examples" / "codex"
INSTALL_S = 300.0
RUN_S = 6 * WAIT_S

FOUND = {"web": {"results": [{"url": "https://h.test/tea", "title": "Tea", "description": "It is hot."}]}}
PATCH = (
    "*** Begin Patch\n*** Add File: tea.md\n+Tea is hot.\n*** Update File: notes.md\n@@\n-cold\n+hot\n*** End Patch\n"
)


@dataclass(frozen=True)
class Codex:
    """Codex in one project, with a home of its own.

    Attributes:
        home: of the user and of Codex; holds the configuration and the sessions.
        project: a git repository, where Codex works.
    """

    home: Path
    project: Path

    async def exec(self, *arguments: str) -> list[Json]:
        """What `codex exec` told of one turn, which succeeds; it has 30 s.

        Its sandbox needs what a container may lack, so it is off; the project is a throwaway.
        """
        given = ("exec", "--strict-config", "--json", "--dangerously-bypass-approvals-and-sandbox", *arguments)
        process = await asyncio.create_subprocess_exec(
            PACKAGE / "node_modules" / ".bin" / "codex",
            *given,
            cwd=self.project,
            env={"PATH": os.environ["PATH"], "HOME": str(self.home), "CODEX_HOME": str(self.home)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        try:
            async with asyncio.timeout(RUN_S):
                told, complained = await process.communicate()
        finally:
            if process.returncode is None:
                os.killpg(process.pid, signal.SIGKILL)  # Node's wrapper, Codex, and what it runs
                await process.wait()
        assert process.returncode == 0, told.decode() + complained.decode()
        return [decode(line) for line in told.splitlines()]

    def read(self, name: str) -> str:
        return (self.project / name).read_text()

    def forget_catalogue(self) -> None:
        """From now on it knows of models only what is built into it."""
        config = self.home / "config.toml"
        lines = config.read_text().splitlines(keepends=True)
        config.write_text("".join(line for line in lines if not line.startswith("model_catalog_json")))


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def codex_stage(placement: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    """The recipe's gateway, and a search provider that knows of tea."""
    gateway = yaml.safe_load((RECIPE / "gateway.yaml").read_text())
    del gateway["upstream"]
    async with running_search_server({"/res/v1/web/search": web_json(FOUND)}) as web:
        search = {"provider": "brave", "api_key": "key", "url": web.url, "allow_private_addresses": True}
        section = yaml.safe_dump({**gateway, "web_search": search})
        async with open_stage(placement, tmp_path_factory.mktemp(placement), gateway_yaml=section) as stage:
            yield stage


@pytest.fixture
def codex(codex_stage: Stage, tmp_path: Path) -> Codex:
    install_packages(PACKAGE, INSTALL_S)
    home, project = tmp_path / "home", tmp_path / "project"
    home.mkdir()
    project.mkdir()
    subprocess.run(["git", "init", "--quiet"], cwd=project, check=True)
    (project / "notes.md").write_text("cold\n")
    config = (RECIPE / "config.toml").read_text()
    (home / "config.toml").write_text(config.replace("http://127.0.0.1:8080", codex_stage.gateway.url))
    (home / "models.json").write_bytes((RECIPE / "models.json").read_bytes())
    return Codex(home, project)


def items(events: list[Json], kind: str) -> list[Json]:
    """The finished items of one type."""
    done = [event["item"] for event in events if event["type"] == "item.completed"]
    return [item for item in done if item["type"] == kind]


def calls_told(request: Json) -> list[tuple[str, str]]:
    """What the model was told of calls: each as what was called, each output as its last line."""
    shown = []
    for item in request["input"]:
        if item["type"] == "function_call":
            shown.append(("call", item["name"]))
        elif item["type"] == "function_call_output":
            shown.append(("output", last_line(item["output"])))
    return shown


def last_line(output: str | list[Json]) -> str:
    written = output if isinstance(output, str) else "".join(part["text"] for part in output)
    return written.splitlines()[-1]


async def refused_requests(stage: Stage) -> int:
    return sum((await stage.gateway.admin.stats(r"^http\..*\.downstream_rq_4xx$")).values())


def assert_told_functions_only(asked: list[Json]) -> None:
    assert {tool["type"] for request in asked for tool in request["tools"]} == {"function"}


async def test_session_runs_a_command_applies_a_patch_and_is_resumed(codex_stage: Stage, codex: Codex) -> None:
    model = codex_stage.model
    model.play(
        function_calls(call("exec_command", {"cmd": "cat notes.md && echo seen > seen.txt"})),
        function_calls(call("apply_patch", {"input": PATCH})),
        text("It is hot now."),
    )
    events = await codex.exec("Tea is hot: say so in the notes.")

    [command], [change] = items(events, "command_execution"), items(events, "file_change")
    assert (command["aggregated_output"], command["exit_code"], change["status"]) == ("cold\n", 0, "completed")
    assert [item["text"] for item in items(events, "agent_message")] == ["It is hot now."]
    assert [codex.read(name) for name in ("seen.txt", "notes.md", "tea.md")] == ["seen\n", "hot\n", "Tea is hot.\n"]
    patched = [("call", "exec_command"), ("output", "cold"), ("call", "apply_patch"), ("output", "M notes.md")]
    assert calls_told(model.asked[-1]) == patched
    assert_told_functions_only(model.asked)

    model.play(
        function_calls(
            call("exec_command", {"cmd": "cat tea.md"}),
            call("web_search", {"action": {"type": "search", "queries": ["tea"]}}),
            call("exec_command", {"cmd": "cat notes.md"}),
        ),
        text("It is so."),
    )
    events = await codex.exec("resume", "--last", "Is that so?")

    assert [item["query"] for item in items(events, "web_search")] == ["tea"]
    ran = [item["aggregated_output"] for item in items(events, "command_execution")]
    assert sorted(ran) == ["Tea is hot.\n", "hot\n"]
    *before, called, searched, (of_search, _), too, said, hot = calls_told(model.asked[-1])
    assert (before, of_search) == (patched, "output")
    assert [called, searched, too] == [("call", name) for name in ("exec_command", "web_search", "exec_command")]
    assert [said, hot] == [("output", "Tea is hot."), ("output", "hot")]
    assert codex_stage.stored_turns() == 0


async def test_gateway_searches_the_web_within_a_turn_of_codex(codex_stage: Stage, codex: Codex) -> None:
    model = codex_stage.model
    model.play(
        function_calls(call("web_search", {"action": {"type": "search", "queries": ["tea"]}})),
        text("Hot, it says."),
    )
    events = await codex.exec("Is tea hot?")

    assert [item["query"] for item in items(events, "web_search")] == ["tea"]
    assert [item["text"] for item in items(events, "agent_message")] == ["Hot, it says."]
    [output] = [item["output"] for item in model.asked[-1]["input"] if item["type"] == "function_call_output"]
    assert "It is hot." in output


async def test_codex_with_its_own_settings_for_the_model_and_a_websocket_first_works(
    codex_stage: Stage, codex: Codex
) -> None:
    codex.forget_catalogue()
    refused = await refused_requests(codex_stage)
    model = codex_stage.model
    model.play(
        function_calls(
            call("exec_command", {"cmd": f"apply_patch <<'EOF'\n{PATCH}EOF"}),
            call("multi_agent_v1__close_agent", {"target": "nobody"}),
        ),
        text("Done."),
    )
    events = await codex.exec("-c", "model_providers.attache.supports_websockets=true", "Tea is hot.")

    assert [item["status"] for item in items(events, "file_change")] == ["completed"]
    assert [item["text"] for item in items(events, "agent_message")] == ["Done."]
    assert [codex.read(name) for name in ("notes.md", "tea.md")] == ["hot\n", "Tea is hot.\n"]
    [complaint] = [item["message"] for item in items(events, "error")]
    assert "Model metadata for `my-model` not found" in complaint
    assert await refused_requests(codex_stage) > refused
    *_, (_, no_such_agent) = calls_told(model.asked[-1])
    assert "nobody" in no_such_agent


async def test_model_with_a_name_of_openais_writes_programs_and_sends_agents(codex_stage: Stage, codex: Codex) -> None:
    """For these names Codex declares its tools in an item of the input, and its agents send messages to each other."""
    codex.forget_catalogue()
    model = codex_stage.model
    program = (
        'const seen = await tools.exec_command({cmd: "cat notes.md"});'
        f"await tools.apply_patch({encode(PATCH).decode()}); text(seen.output);"
    )
    steps = [
        function_calls(call("functions__exec", {"input": program})),
        function_calls(call("collaboration__spawn_agent", {"task_name": "taste", "message": "Taste it."})),
        function_calls(call("collaboration__wait_agent", {})),
        text("Hot, it tells me."),
    ]

    def answer(request: ReceivedRequest) -> Reply:
        if any("Taste it." in message for message in user_messages(request.body)):
            return text("Ouch.")
        return steps[len([item for item in request.body["input"] if item["type"] == "function_call"])]

    model.set(answer)
    events = await codex.exec("-m", "gpt-5.6-sol", "Tea is hot.")

    assert [item["text"] for item in items(events, "agent_message")] == ["Hot, it tells me."]
    assert [codex.read(name) for name in ("notes.md", "tea.md")] == ["hot\n", "Tea is hot.\n"]
    assert_told_functions_only(model.asked)
    last = max(model.asked, key=lambda request: len(calls_told(request)))
    assert calls_told(last)[:2] == [("call", "functions__exec"), ("output", "cold")]
    assert any("Ouch." in message for message in user_messages(last))


def user_messages(request: Json) -> list[str]:
    messages = [item for item in request["input"] if item["type"] == "message" and item["role"] == "user"]
    return ["".join(part["text"] for part in message["content"]) for message in messages]
