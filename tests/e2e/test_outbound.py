"""Where tools may reach, through the whole gateway: nobody inside is contacted, whatever a client or a model names."""

from __future__ import annotations

import asyncio
import gzip
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from attache_core.testing.model_script import call, function_calls, text
from attache_core.testing.search_server import (
    SearchServer,
    WebAnswer,
    running_search_server,
    web_json,
    web_page,
    web_redirect,
)
from e2e.stage import Stage, check, open_stage

TOOL = {"type": "web_search"}
REFUSED = ("The URL is refused: ", "The URL's host name cannot be resolved")
HOSTS = (
    "127.0.0.1",
    "127.1",
    "0177.0.0.1",
    "0x7f000001",
    "2130706433",
    "127\uff0e0\uff0e0\uff0e1",
    "127.0.0.1.",
    "localhost",
    "LOCALHOST.",
    "0",
    "[::1]",
    "[::]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[64:ff9b::7f00:1]",
    "[2002:7f00:1::]",
    "[2001:0:7f00:1::]",
    "good.test@127.0.0.1",
    "good.test\\@127.0.0.1",
    "%31%32%37.0.0.1",
)
"""One address, spelt so that a check of the text alone would let it pass."""


@dataclass(frozen=True)
class Town:
    stage: Stage
    web: SearchServer

    @property
    def port(self) -> int:
        return int(self.web.url.rpartition(":")[2])


@asynccontextmanager
async def open_town(placement: str, folder: Path, outbound: str) -> AsyncIterator[Town]:
    """A gateway whose tools may reach what `outbound` says, and a web server beside it."""
    async with running_search_server() as web:
        yaml = f"web_search: {{provider: searxng, url: '{web.url}', {outbound}}}\nmcp: {{{outbound}}}\n"
        async with open_stage(placement, folder, gateway_yaml=yaml) as stage:
            yield Town(stage, web)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def closed_town(placement: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Town]:
    folder = tmp_path_factory.mktemp(f"closed-{placement}")
    async with open_town(placement, folder, "allow_private_addresses: false") as town:
        yield town


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def open_to_one(placement: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Town]:
    """Only the host `127.0.0.1`, by this name, may be reached."""
    folder = tmp_path_factory.mktemp(f"one-{placement}")
    async with open_town(placement, folder, "allow_private_addresses: true, allowed_hosts: ['127.0.0.1']") as town:
        yield town


async def opened(town: Town, *urls: str, stream: bool) -> list[Any]:
    """What the model is told of pages, all opened in one round."""
    actions = [{"action": {"type": "open_page", "url": url}} for url in urls]
    town.stage.model.play(function_calls(*(call("web_search", action) for action in actions)), text("Done."))
    check(await town.stage.ask(input="Go", tools=[TOOL], stream=stream))
    return [item["output"] for item in town.stage.model.asked[1]["input"] if item["type"] == "function_call_output"]


async def test_no_spelling_of_an_address_inside_is_opened_as_a_page(closed_town: Town, stream: bool) -> None:
    closed_town.web.answers["/secret"] = web_page("secret")
    urls = [f"http://{host}:{closed_town.port}/secret" for host in HOSTS]
    told = await opened(closed_town, *urls, "file:///etc/passwd", "gopher://127.0.0.1/", stream=stream)
    assert [text for text in told if not text.startswith(REFUSED)] == []
    assert closed_town.web.requests == []


async def test_no_spelling_of_an_address_inside_is_an_mcp_server(closed_town: Town, stream: bool) -> None:
    stage = closed_town.stage
    stage.model.play(text("Done."))
    port, before = stage.mcp.url.split(":")[2].partition("/")[0], len(stage.mcp.requests)
    tools = [
        stage.mcp_tool(label=f"s{number}", server_url=f"http://{host}:{port}/mcp") for number, host in enumerate(HOSTS)
    ]
    answer = check(await stage.ask(input="Go", tools=tools, stream=stream))
    listings = [item for item in answer.body["output"] if item["type"] == "mcp_list_tools"]
    expected = ("The MCP server's URL is refused: ", "The MCP server's host name cannot be resolved")
    assert [item["error"].startswith(expected) for item in listings] == [True] * len(HOSTS)
    assert ("tools" in stage.model.asked[0], len(stage.mcp.requests)) == (False, before)


async def test_redirects_are_judged_wherever_in_a_chain_they_stand(open_to_one: Town, stream: bool) -> None:
    town, port = open_to_one, open_to_one.port
    town.web.requests.clear()
    targets = [
        *(f"http://{host}:{port}/secret" for host in ("localhost", "127.1", "[::ffff:127.0.0.1]", "2130706433")),
        "//localhost:1/secret",
        "file:///etc/passwd",
        "gopher://127.0.0.1:1/",
        "http://u:p@127.0.0.1/",
        "http://127.0.0.1:0/",
    ]
    town.web.answers["/secret"] = web_page("secret")
    for number, target in enumerate(targets):
        hops = [f"/{number}/{hop}" for hop in range(4)]
        town.web.answers |= dict(zip(hops, [*map(web_redirect, hops[1:]), web_redirect(target)], strict=True))

    told = await opened(town, *(f"{town.web.url}/{number}/0" for number in range(len(targets))), stream=stream)

    assert [text for text in told if not text.startswith(REFUSED)] == []
    assert len(town.web.requests) == 4 * len(targets)
    assert "/secret" not in {asked.path for asked in town.web.requests}


async def test_pages_that_are_compressed_huge_or_no_text_are_told_so(open_to_one: Town, stream: bool) -> None:
    town = open_to_one
    bomb = gzip.compress(bytes(10_000_000))
    town.web.answers |= {
        "/bomb": WebAnswer(bomb, headers={"content-type": "text/html", "content-encoding": "gzip"}),
        "/huge": web_page(f"<p>{'word ' * 400_000}"),
        "/tags": web_page("<a href='" * 100_000),
        "/latin": WebAnswer("caf\u00e9".encode("latin-1"), headers={"content-type": "text/plain; charset=iso-8859-1"}),
        "/binary": WebAnswer(b"\x89PNG", headers={"content-type": "image/png"}),
    }
    paths = ("bomb", "huge", "tags", "latin", "binary", "nowhere")
    bombed, huge, tags, latin, binary, nowhere = await opened(
        town, *(f"{town.web.url}/{path}" for path in paths), stream=stream
    )
    assert bombed == "The server compressed its answer, though it was asked not to."
    assert huge.endswith("[Cut off here: the first 40000 characters.]")
    assert len(huge) < 41_000
    assert len(tags) < 41_000
    assert latin.endswith("caf\u00e9")
    assert binary == "The page is image/png, which cannot be read; only HTML and texts can."
    assert nowhere == "The page's server answered with HTTP status 404."


async def test_proxies_of_the_environment_are_neither_used_nor_asked(
    placement: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    contacted = list[bytes]()

    async def proxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        contacted.append(await reader.read(100))
        writer.close()

    async with await asyncio.start_server(proxy, "127.0.0.1", 0, family=socket.AF_INET) as listener:
        url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, url)
            monkeypatch.setenv(name.lower(), url)
        monkeypatch.setenv("NO_PROXY", "10.0.0.0/8")
        async with open_town(placement, tmp_path, "allow_private_addresses: true") as town:
            found = {"results": [{"url": "https://h.test/", "title": "T", "content": "Found."}]}
            town.web.answers |= {"/search": web_json(found), "/a": web_page("<p>Read.")}
            town.stage.model.play(
                function_calls(
                    call("web_search", {"action": {"type": "search", "queries": ["tea"]}}),
                    call("web_search", {"action": {"type": "open_page", "url": f"{town.web.url}/a"}}),
                    call("echo", {"text": "Echoed."}),
                ),
                text("Done."),
            )
            check(await town.stage.ask(input="Go", tools=[TOOL, town.stage.mcp_tool()]))
            told = [item["output"] for item in town.stage.model.asked[1]["input"] if "output" in item]
    assert [said in one for said, one in zip(("Found.", "Read.", "Echoed."), told, strict=True)] == [True] * 3
    assert contacted == []
