"""Whose request it is, by its headers."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attache_core.errors import ClientError
from attache_core.types.turn import DEFAULT_TENANT, TurnRequest
from attache_filters.extproc.codec import decode_turn, encode_turn
from attache_filters.extproc.headers import TENANT, VERIFIED_TENANT
from attache_filters.sdk import HttpRequest, tenant_of

TENANTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=256)


@given(tenant=TENANTS)
def test_tenant_that_envoy_verified_is_taken_as_it_is_and_told_to_the_filters_below(tenant: str) -> None:
    turn = decode_turn(HttpRequest("POST", "/v1/responses", {VERIFIED_TENANT: tenant}, b"{}"))
    below = encode_turn(turn, method="POST", path="/v1/responses")

    assert turn == TurnRequest({}, {}, turn.facts)
    assert (turn.facts.tenant, tenant_of(below.headers)) == (tenant, tenant)
    assert VERIFIED_TENANT not in below.headers
    assert all(value.isascii() for value in below.headers.values())


def test_what_filters_say_comes_before_what_envoy_said_to_the_first_of_them() -> None:
    assert tenant_of({VERIFIED_TENANT: "a", TENANT: "b%2541"}) == "b%41"


def test_request_of_a_gateway_without_authentication_is_the_one_tenants() -> None:
    assert tenant_of({"authorization": "Bearer x", "x-tenant": "y"}) == DEFAULT_TENANT


NO_TENANTS = ["", "x" * 1025, "é" * 513, "a\0b"]


@pytest.mark.parametrize(
    "headers",
    [
        *({VERIFIED_TENANT: tenant} for tenant in [*NO_TENANTS, "\udcff"]),
        *({TENANT: quote(tenant)} for tenant in NO_TENANTS),
    ],
)
def test_tenant_that_can_be_no_key_is_refused_and_never_the_default_one(headers: dict[str, str]) -> None:
    with pytest.raises(ClientError) as refused:
        tenant_of(headers)
    assert (refused.value.http_status, refused.value.code) == (403, "permission_denied")
