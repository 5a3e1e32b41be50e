"""Exchanges with a real server on loopback."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from attache_core.testing.search_server import (
    Answering,
    SearchServer,
    WebAnswer,
    running_search_server,
    web_page,
    web_redirect,
)
from attache_core.tools.outbound import addresses
from attache_core.tools.outbound.credentials import Credentials
from attache_core.tools.outbound.fetch import Answer, ExchangeLimits, Exchanges, OutboundRequest
from attache_core.tools.outbound.policy import OutboundError, OutboundPolicy
from attache_core.tools.outbound.settings import OutboundSettings
from core.tools.outbound.resolver import answer_with
from core.tools.outbound.spellings import INSIDE, MALFORMED

LIMITS = ExchangeLimits(timeout_s=4, max_bytes=1000, max_redirects=3)
TLS = ssl.create_default_context()
KEY = Credentials({"x-key": "canary-7f3a"})
NOT_PUBLIC = (
    "its host has an address that is not public; the gateway's setting test.allow_private_addresses would allow it"
)


@pytest.fixture
async def server() -> AsyncIterator[SearchServer]:
    async with running_search_server() as running:
        yield running


async def fetched(url: str, limits: ExchangeLimits = LIMITS, *, private: bool = True, **fields: Any) -> Answer:
    policy = OutboundPolicy("test", OutboundSettings(allow_private_addresses=private))
    async with asyncio.timeout(5):
        return await Exchanges(TLS).fetch(OutboundRequest(url, **fields), policy, limits)


async def failure(url: str, limits: ExchangeLimits = LIMITS, **fields: Any) -> str:
    with pytest.raises(OutboundError) as raised:
        await fetched(url, limits, **fields)
    return raised.value.message


async def test_answer_comes_whole_with_what_was_asked(server: SearchServer) -> None:
    server.answers["/a"] = WebAnswer(b"body", 418, {"X-Thing": "1"})
    answer = await fetched(f"{server.url}/a?q=1#part", headers={"accept": "*/*"}, credentials=KEY)
    headers = {"content-length": "4", "x-thing": "1"}
    assert answer == Answer(f"{server.url}/a?q=1", 418, headers, b"body")
    asked = server.requests[0]
    assert (asked.method, asked.path) == ("GET", "/a?q=1")
    assert asked.headers == {
        "host": server.url.removeprefix("http://"),
        "accept": "*/*",
        "x-key": "canary-7f3a",
        "accept-encoding": "identity",
    }


async def test_body_is_posted(server: SearchServer) -> None:
    server.answers["/a"] = WebAnswer(b"ok")
    await fetched(f"{server.url}/a", method="POST", body=b'{"q": 1}')
    assert (server.requests[0].method, server.requests[0].body) == ("POST", {"q": 1})


async def test_body_that_is_too_long_is_cut_off(server: SearchServer) -> None:
    server.answers["/a"] = WebAnswer(b"x" * 1001)
    server.answers["/b"] = WebAnswer(b"x" * 1000)
    long, just = await fetched(f"{server.url}/a"), await fetched(f"{server.url}/b")
    assert [(len(answer.body), answer.cut) for answer in (long, just)] == [(1000, True), (1000, False)]


FAULTS: Mapping[str, tuple[Answering, str]] = {
    "hang": (WebAnswer(how="hang"), "The server did not answer within 0.3 s."),
    "cut": (WebAnswer(b"x" * 100, how="cut"), "The server broke off, or its answer is not valid HTTP."),
    "compressed": (
        WebAnswer(b"x", headers={"content-encoding": "gzip"}),
        "The server compressed its answer, though it was asked not to.",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_server_that_fails_is_an_error_that_says_how(server: SearchServer, fault: str) -> None:
    server.answers["/a"], expected = FAULTS[fault]
    assert await failure(f"{server.url}/a", ExchangeLimits(timeout_s=0.3, max_bytes=1000)) == expected


async def test_server_that_is_not_there_is_an_error(refusing_url: str) -> None:
    assert await failure(refusing_url) == "The server cannot be reached."


async def test_what_is_not_http_is_an_error() -> None:
    async def babble(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 ready\r\n")
        writer.close()

    async with await asyncio.start_server(babble, "127.0.0.1", 0) as babbling:
        port = babbling.sockets[0].getsockname()[1]
        assert await failure(f"http://127.0.0.1:{port}/") == "The server broke off, or its answer is not valid HTTP."


class TestRedirects:
    async def test_chain_is_followed_to_its_end(self, server: SearchServer) -> None:
        server.answers |= {
            "/a": web_redirect("/b", 301),
            "/b": web_redirect(f"{server.url}/c?x=1#y", 307),
            "/c": web_page("<p>end"),
        }
        answer = await fetched(f"{server.url}/a", credentials=KEY)
        assert (answer.url, answer.body) == (f"{server.url}/c?x=1", b"<p>end")
        assert [asked.headers.get("x-key") for asked in server.requests] == ["canary-7f3a"] * 3

    async def test_one_too_many_is_the_answer(self, server: SearchServer) -> None:
        server.answers["/a"] = web_redirect("/a")
        answer = await fetched(f"{server.url}/a")
        assert (answer.status, len(server.requests)) == (302, 4)

    async def test_post_is_not_redirected(self, server: SearchServer) -> None:
        server.answers["/a"] = web_redirect("/b", 307)
        assert (await fetched(f"{server.url}/a", method="POST", body=b"x")).status == 307
        assert len(server.requests) == 1

    async def test_credentials_do_not_go_to_another_host_and_not_to_what_follows(self, server: SearchServer) -> None:
        async with running_search_server() as other:
            server.answers |= {"/a": web_redirect(f"{other.url}/b"), "/c": web_page("<p>end")}
            other.answers["/b"] = web_redirect(f"{server.url}/c")
            assert (await fetched(f"{server.url}/a", credentials=KEY)).status == 200
        seen = [asked.headers.get("x-key") for asked in (*server.requests, *other.requests)]
        assert seen == ["canary-7f3a", None, None]

    async def test_credentials_do_not_go_to_the_same_server_by_another_name(
        self, server: SearchServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        answer_with(monkeypatch, ["127.0.0.1"])
        there = server.url.replace("127.0.0.1", "there.test")
        server.answers |= {"/a": web_redirect(f"{there}/b"), "/b": web_page("")}
        await fetched(f"{server.url}/a", credentials=KEY)
        assert [asked.headers.get("x-key") for asked in server.requests] == ["canary-7f3a", None]

    @pytest.mark.parametrize("location", [*INSIDE, *(url for url, _ in MALFORMED if "://" in url)])
    async def test_redirect_inside_is_refused_and_nobody_there_contacted(
        self, monkeypatch: pytest.MonkeyPatch, location: str
    ) -> None:
        """The first server counts as public, so that only the redirect is judged."""
        safe = "".join(char if char.isprintable() else "%0a" for char in location)
        async with running_search_server({"/a": web_redirect(safe.encode().decode("latin-1"))}) as server:
            trust_once(monkeypatch)
            message = await failure(f"{server.url}/a", private=False)
        assert message.startswith(("The URL is refused: ", "The URL's host name cannot be resolved")), message
        assert len(server.requests) == 1

    @pytest.mark.parametrize(
        "target", ["http://127.0.0.1:{port}/b", "//127.1:{port}/b", "http://localhost:{port}/b", "/b"]
    )
    async def test_chain_that_comes_back_inside_is_refused_at_its_second_step(
        self, monkeypatch: pytest.MonkeyPatch, target: str
    ) -> None:
        async with running_search_server() as server:
            port = server.url.rpartition(":")[2]
            server.answers |= {"/a": web_redirect(target.format(port=port)), "/b": web_page("secret")}
            trust_once(monkeypatch)
            message = await failure(f"{server.url}/a", private=False)
        assert (message, len(server.requests)) == (f"The URL is refused: {NOT_PUBLIC}.", 1)


async def test_name_is_resolved_once_and_named_to_the_server(
    server: SearchServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = answer_with(monkeypatch, ["127.0.0.1"], ["192.0.2.1"])
    server.answers["/a"] = web_page("here")
    answer = await fetched(f"{server.url.replace('127.0.0.1', 'pinned.test')}/a")
    assert (answer.body, asked) == (b"here", ["pinned.test"])
    assert server.requests[0].headers["host"].startswith("pinned.test:")


async def test_unreachable_address_of_a_name_gives_way_to_the_next(
    server: SearchServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer_with(monkeypatch, ["127.0.0.9", "127.0.0.1"])
    server.answers["/a"] = web_page("here")
    assert (await fetched(f"{server.url.replace('127.0.0.1', 'two.test')}/a")).body == b"here"


def trust_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the first address that is judged for a public one."""
    judged = list[str]()

    def is_public(address: str) -> bool:
        judged.append(address)
        return len(judged) == 1 or addresses.is_public(address)

    monkeypatch.setattr("attache_core.tools.outbound.policy.is_public", is_public)
