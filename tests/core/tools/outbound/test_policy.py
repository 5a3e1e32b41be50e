from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from attache_core.tools.outbound.addresses import is_public
from attache_core.tools.outbound.policy import MAX_ADDRESSES, Endpoint, OutboundError, OutboundPolicy
from attache_core.tools.outbound.settings import OutboundSettings
from core.tools.outbound.resolver import answer_with
from core.tools.outbound.spellings import INSIDE, MALFORMED

NOT_PUBLIC = (
    "The URL is refused: its host has an address that is not public; "
    "the gateway's setting web_search.allow_private_addresses would allow it."
)
ALWAYS_REFUSED = (
    "The URL is refused: it is not a valid URL.",
    "The URL is refused: its host is neither a host name nor an address.",
    "The URL's host name cannot be resolved.",
)


def policy(login: str | None = None, **settings: Any) -> OutboundPolicy:
    return OutboundPolicy("web_search", OutboundSettings(**settings), login)


async def refusal(url: str, login: str | None = None, **settings: Any) -> str:
    with pytest.raises(OutboundError) as raised:
        await policy(login, **settings).resolve(url)
    return raised.value.message


@pytest.mark.parametrize("url", INSIDE)
async def test_url_that_leads_inside_is_refused_and_the_setting_named(url: str) -> None:
    assert await refusal(url) in (NOT_PUBLIC, *ALWAYS_REFUSED)


@pytest.mark.parametrize(("url", "reason"), MALFORMED)
async def test_url_that_is_none_of_ours_is_refused_whatever_is_allowed(url: str, reason: str) -> None:
    assert await refusal(url, allow_private_addresses=True) == f"The URL is refused: {reason}."


async def test_refusal_of_a_login_says_where_else_it_belongs_and_repeats_nothing_of_it() -> None:
    message = await refusal("http://user:hunter2@example.com/", login="`headers`")
    assert message == "The URL is refused: it must not contain a user name or password; use `headers`."


@pytest.mark.parametrize("url", ["http://8.8.8.8/x", "https://[2606:4700:4700::1111]:8443/x"])
async def test_public_address_is_resolved_to_itself(url: str) -> None:
    scheme, host, port = ("http", "8.8.8.8", 80) if "8.8.8.8" in url else ("https", "2606:4700:4700::1111", 8443)
    assert await policy().resolve(url) == Endpoint(scheme, host, port, (host,))


async def test_private_address_is_allowed_where_the_operator_says_so() -> None:
    endpoint = await policy(allow_private_addresses=True).resolve("http://127.0.0.1:81/x")
    assert endpoint == Endpoint("http", "127.0.0.1", 81, ("127.0.0.1",))


@pytest.mark.parametrize("address", ["8.8.8.8", "1.1.1.1", "2606:4700:4700::1111", "2a00:1450:4001:800::200e"])
def test_public_address_is_public(address: str) -> None:
    assert is_public(address)


async def test_name_with_one_private_address_among_public_ones_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    answer_with(monkeypatch, ["8.8.8.8"], ["8.8.8.8", "10.0.0.1"])
    assert (await policy().resolve("http://mixed.test/")).addresses == ("8.8.8.8",)
    assert await refusal("http://mixed.test/") == NOT_PUBLIC


async def test_private_address_after_the_last_one_that_counts_is_seen_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    public = [f"8.8.8.{number}" for number in range(MAX_ADDRESSES + 4)]
    answer_with(monkeypatch, public, [*public, "10.0.0.1"])
    assert (await policy().resolve("http://many.test/")).addresses == tuple(public[:MAX_ADDRESSES])
    assert await refusal("http://many.test/") == NOT_PUBLIC


async def test_scheme_that_is_not_allowed_is_refused_and_the_setting_named() -> None:
    message = await refusal("http://8.8.8.8/", allowed_schemes=("https",))
    assert message == "The URL is refused: its scheme is not in the gateway's setting web_search.allowed_schemes."


@pytest.mark.parametrize(
    ("host", "admitted"),
    [
        ("example.com", True),
        ("EXAMPLE.com.", True),
        ("www.example.com", False),
        ("a.wild.test", True),
        ("a.b.WILD.test", True),
        ("wild.test", False),
        ("notwild.test", False),
        ("wild.test.evil.test", False),
        ("b\u00fccher.test", True),
        ("xn--bcher-kva.test", True),
        ("example.com.evil.test", False),
        ("example\u3002com", True),
    ],
)
@pytest.mark.parametrize("written", ["xn--BCHER-kva.test", "b\u00fccher.test", "B\u00dcCHER\u3002test."])
async def test_list_of_hosts_admits_them_in_every_spelling_and_no_others(
    monkeypatch: pytest.MonkeyPatch, host: str, admitted: bool, written: str
) -> None:
    answer_with(monkeypatch, ["8.8.8.8"])
    hosts = ("example.com", "*.wild.test", written)
    if admitted:
        assert (await policy(allowed_hosts=hosts).resolve(f"https://{host}/")).addresses == ("8.8.8.8",)
    else:
        message = await refusal(f"https://{host}/", allowed_hosts=hosts)
        assert message == "The URL is refused: its host is not in the gateway's setting web_search.allowed_hosts."


async def test_allowed_host_with_a_private_address_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    answer_with(monkeypatch, ["10.0.0.1"])
    assert await refusal("http://inside.test/", allowed_hosts=("inside.test",)) == NOT_PUBLIC


@pytest.mark.parametrize(
    "pattern", ["", "*", "*.", "a b", "http://example.com", "example.com/x", "*.*.test", "a..b", "\u2603.test"]
)
def test_pattern_that_is_no_host_is_refused_when_the_settings_are_read(pattern: str) -> None:
    with pytest.raises(ValidationError, match="is no host name"):
        OutboundSettings(allowed_hosts=(pattern,))
