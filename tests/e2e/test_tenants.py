"""Two tenants on one gateway: Envoy says who asks, and what is another's is as unknown as what nobody has."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import jwt
import openai
import pytest
import pytest_asyncio

from attache_core.json_codec import Json
from attache_core.testing.model_script import call, function_calls, text
from attache_filters.builtin.resources.endpoints import ENDPOINTS
from e2e.raw_http import http_answer
from e2e.sdk_client import open_sdk
from e2e.stage import Stage, check, open_stage
from e2e.two_tenants import (
    ACME_KEY,
    ACME_NEW_KEY,
    AUDIENCE,
    ISSUER,
    UPSTREAM_KEY,
    Tenants,
    bearer,
    jwt_yaml,
    key_set,
    open_tenants,
    signed_with_public_key,
    token,
)

KINDS = ("api_keys", "jwt")
UNAUTHENTICATED: Json = {
    "error": {
        "message": "A valid key or token is needed: send it as `authorization: Bearer …`.",
        "type": "invalid_request_error",
        "param": None,
        "code": "invalid_api_key",
    }
}
FORBIDDEN: Json = {
    "error": {
        "message": "The credentials do not allow this.",
        "type": "invalid_request_error",
        "param": None,
        "code": "permission_denied",
    }
}


@pytest_asyncio.fixture(scope="module", loop_scope="session", params=KINDS)
async def tenants_of_kind(
    request: pytest.FixtureRequest, placement: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Tenants]:
    folder = tmp_path_factory.mktemp(f"tenants-{placement}")
    async with open_tenants(placement, folder, request.param, workers=2) as tenants:
        yield tenants


@pytest.fixture
def tenants(tenants_of_kind: Tenants) -> Tenants:
    tenants_of_kind.one.model.play()
    return tenants_of_kind


def not_found(kind: str, name: str, param: str | None = None) -> Json:
    message = f"{kind} with id '{name}' not found."
    return {"error": {"message": message, "type": "invalid_request_error", "param": param, "code": None}}


async def conversation_of(stage: Stage, *texts: str) -> str:
    items = [{"id": f"msg_{said}", "type": "message", "role": "user", "content": said} for said in texts]
    created = await stage.client.post("/v1/conversations", json={"items": items})
    assert created.status_code == 200, created.text
    return str(created.json()["id"])


async def seen(stage: Stage, response_id: str, conversation_id: str) -> list[Json]:
    """All that a tenant sees of a response and of a conversation."""
    paths = [f"/v1/responses/{response_id}", f"/v1/responses/{response_id}/input_items"]
    paths += [f"/v1/conversations/{conversation_id}", f"/v1/conversations/{conversation_id}/items"]
    answers = [await stage.get(path) for path in paths]
    assert [answer.status_code for answer in answers] == [200] * 4
    return [answer.json() for answer in answers]


WITH_ID = [(each.method, each.path.pattern.replace("([^/]+)", "{}")) for each in ENDPOINTS if each.path.groups]


@pytest.mark.parametrize(("method", "path"), WITH_ID)
async def test_every_endpoint_answers_404_for_the_id_of_another_tenant_and_changes_nothing(
    tenants: Tenants, method: str, path: str
) -> None:
    tenants.one.model.play(text("one's"))
    response = check(await tenants.one.ask(input="secret")).body["id"]
    conversation = await conversation_of(tenants.one, "secret")
    before = await seen(tenants.one, response, conversation)
    body: Json = {"metadata": {"taken": "yes"}, "items": [{"role": "user", "content": "x"}]}
    sent: Json = {"json": body} if method == "POST" else {}
    theirs = (response,) if "responses" in path else (conversation, "msg_secret")

    refused = await tenants.other.client.request(method, path.format(*theirs), **sent)

    unknown = tuple(f"{name.partition('_')[0]}_unknown" for name in theirs)
    nobodys = await tenants.other.client.request(method, path.format(*unknown), **sent)
    assert (refused.status_code, nobodys.status_code) == (404, 404)
    told = refused.json()
    for name, other in zip(theirs, unknown, strict=True):
        told["error"]["message"] = told["error"]["message"].replace(name, other)
    assert told == nobodys.json()
    assert await seen(tenants.one, response, conversation) == before


async def test_no_turn_builds_on_what_is_another_tenants(tenants: Tenants, stream: bool) -> None:
    tenants.one.model.play(text("one's"))
    response = check(await tenants.one.ask(input="secret")).body
    conversation = await conversation_of(tenants.one, "secret")
    item = response["output"][0]["id"]
    attempts: list[tuple[Json, int, str]] = [
        ({"input": "?", "previous_response_id": response["id"]}, 400, "previous_response_id"),
        ({"input": "?", "conversation": conversation}, 404, "conversation"),
        ({"input": [{"type": "item_reference", "id": item}]}, 404, "input"),
        ({"input": [{"type": "item_reference", "id": "msg_secret"}]}, 404, "input"),
    ]

    for body, status, param in attempts:
        refused = await tenants.other.ask(stream=stream, **body)

        assert (refused.status, refused.body["error"]["param"]) == (status, param)
    assert len(tenants.one.model.asked) == 1


async def test_approval_of_another_tenant_cannot_be_given(tenants: Tenants, stream: bool) -> None:
    stage, ran = tenants.one, len(tenants.one.mcp.calls)
    tool = stage.mcp_tool(require_approval="always")
    stage.model.play(function_calls(call("echo", {"text": "a"})))
    first = check(await stage.ask(input="Echo", tools=[tool], stream=stream)).body
    given = [{"type": "mcp_approval_response", "approval_request_id": first["output"][-1]["id"], "approve": True}]

    for previous in ({"previous_response_id": first["id"]}, {}):
        refused = await tenants.other.ask(input=[first["output"][-1], *given], tools=[tool], stream=stream, **previous)
        assert refused.status == 400

    assert len(stage.mcp.calls) == ran
    stage.model.play(text("Done."))
    done = check(await stage.ask(input=given, previous_response_id=first["id"], tools=[tool], stream=stream))
    assert (done.text, len(stage.mcp.calls)) == ("Done.", ran + 1)


async def test_two_tenants_with_the_same_ids_each_see_their_own(tenants: Tenants, stream: bool) -> None:
    given = {"id": "msg_shared", "type": "message", "role": "user"}
    tenants.one.model.set(lambda asked: text(f"You said {asked.body['input'][0]['content']}."))
    for stage, said in ((tenants.one, "one"), (tenants.other, "other")):
        check(await stage.ask(input=[{**given, "content": said}], stream=stream))
        conversation = await stage.client.post("/v1/conversations", json={"items": [{**given, "content": said}]})
        assert conversation.status_code == 200

    for stage, said in ((tenants.one, "one"), (tenants.other, "other")):
        answer = check(await stage.ask(input=[{"type": "item_reference", "id": "msg_shared"}], stream=stream))
        listed = (await stage.get(f"/v1/responses/{answer.body['id']}/input_items")).json()
        assert answer.text == f"You said {said}."
        assert [item["content"][0]["text"] for item in listed["data"]] == [said]


FORGED = {
    "x-attache-tenant": "gl%C3%B6bex%20%2541",
    "x-attache-verified-tenant": "glöbex %41",
    "X-Attache-Verified-Tenant": "default",
    "x-attache-response-id": "resp_forged",
    "x-attache-stored": "true",
    "x-attache-history-items": "0",
    "x-attache-segment": "resources/0",
    "x_attache_tenant": "glöbex %41",
}


@pytest.mark.parametrize("name", FORGED)
async def test_headers_of_ours_that_a_client_sends_gain_nothing(tenants: Tenants, stream: bool, name: str) -> None:
    tenants.one.model.play(text("other's"), text("one's"))
    theirs = check(await tenants.other.ask(input="secret", stream=stream)).body["id"]
    forged = {name.encode(): FORGED[name].encode()}

    read = await tenants.one.client.get(f"/v1/responses/{theirs}", headers=forged)
    body = {"model": "m", "input": "Hi", "stream": stream}
    request: Any = {**bearer("wrong-0123456789"), name: FORGED[name].encode()}
    unknown = await tenants.one.client.post("/v1/responses", json=body, headers=request)
    made = await tenants.one.client.post("/v1/responses", json={**body, "stream": False}, headers=forged)

    assert (read.status_code, read.json()) == (404, not_found("Response", theirs))
    assert (unknown.status_code, unknown.json()) == (401, UNAUTHENTICATED)
    assert made.json()["id"] != "resp_forged"
    assert (await tenants.one.get(f"/v1/responses/{made.json()['id']}")).json() == made.json()
    assert (await tenants.other.get(f"/v1/responses/{made.json()['id']}")).status_code == 404
    assert not [each for each in tenants.one.model.requests[-1].headers if "attache" in each.replace("_attache", "")]


PATHS = [
    ("POST", "/v1/responses"),
    ("GET", "/v1/responses/resp_1"),
    ("DELETE", "/v1/conversations/conv_1"),
    ("POST", "/v1/conversations"),
    ("GET", "/v1/models"),
    ("POST", "/v1/chat/completions"),
    ("POST", "/ready"),
    ("GET", "/ready/"),
    ("GET", "/nowhere"),
]
WRONG: list[dict[str, str]] = [
    {},
    {"authorization": ""},
    {"authorization": "Bearer wrong-0123456789"},
    {"authorization": f"Bearer {ACME_KEY[:-1]}"},
    {"authorization": f"Basic {ACME_KEY}"},
    {"authorization": f"bearer {ACME_KEY.upper()}"},
    {"x-api-key": ACME_KEY},
]


@pytest.mark.parametrize(("method", "path"), PATHS)
async def test_request_without_a_valid_credential_is_401_everywhere(tenants: Tenants, method: str, path: str) -> None:
    async with httpx.AsyncClient(base_url=tenants.one.gateway.url) as client:
        for headers in WRONG:
            answer = await client.request(method, f"{path}?access_token={token(org={'id': 'acme'})}", headers=headers)

            assert (answer.status_code, answer.json()) == (401, UNAUTHENTICATED)
            assert answer.headers["content-type"] == "application/json"
            assert answer.headers["www-authenticate"].startswith("Bearer")
            assert answer.headers["x-request-id"]
    assert tenants.one.model.requests == []


async def test_health_and_readiness_need_no_credential(tenants: Tenants) -> None:
    async with httpx.AsyncClient(base_url=tenants.one.gateway.url) as client:
        answers = [await client.get("/health"), await client.get("/ready")]

    assert [(answer.status_code, answer.json()) for answer in answers] == [
        (200, {"status": "ok"}),
        (200, {"status": "ready"}),
    ]


async def test_credential_of_a_client_reaches_no_inference_server(tenants: Tenants, stream: bool) -> None:
    tenants.one.model.play(text("Hi."), text("Hi."))

    check(await tenants.one.ask(input="Hi", stream=stream))
    await tenants.one.client.post("/v1/chat/completions", json={"model": "m", "messages": []})

    assert ["authorization" in request.headers for request in tenants.one.model.requests] == [False, False]


@pytest.mark.parametrize("key", [ACME_KEY, ACME_NEW_KEY])
async def test_sdk_sends_a_key_of_its_tenant_and_any_other_is_an_authentication_error(
    tenants: Tenants, key: str
) -> None:
    if tenants.one.settings.authentication is None or tenants.one.settings.authentication.jwt is not None:
        key = token(org={"id": "acme"})
    tenants.one.model.play(text("Hi."))
    async with open_sdk(tenants.one, api_key=key) as sdk:
        made = await sdk.responses.create(model="m", input="Hi")
        assert (await tenants.one.get(f"/v1/responses/{made.id}")).status_code == 200
        with pytest.raises(openai.AuthenticationError) as refused:
            await sdk.with_options(api_key="sk-wrong-0123456789").responses.retrieve(made.id)
    assert refused.value.code == "invalid_api_key"


async def test_inference_server_is_asked_with_the_gateways_own_key(
    placement: str, stream: bool, tmp_path: Path
) -> None:
    own = f"api_key: '{UPSTREAM_KEY}'"
    async with open_tenants(placement, tmp_path, "api_keys", upstream_yaml=own) as tenants:
        tenants.one.model.play(function_calls(call("echo", {"text": "a"})), text("Done."), text("Hi."))

        check(await tenants.one.ask(input="Echo", tools=[tenants.one.mcp_tool()], stream=stream))
        await tenants.one.client.post("/v1/chat/completions", json={"model": "m", "messages": []})

        asked = [request.headers.get("authorization") for request in tenants.one.model.requests]
        assert asked == [f"Bearer {UPSTREAM_KEY}"] * 3


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def token_stage(placement: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    async with open_tenants(placement, tmp_path_factory.mktemp(f"tokens-{placement}"), "jwt") as tenants:
        yield tenants.one


REFUSED_TOKENS = [
    ({"exp": 1}, 401),
    ({"exp": None}, 401),
    ({"nbf": 2**33}, 401),
    ({"iss": "https://other.example"}, 401),
    ({"iss": None}, 401),
    ({"aud": "other"}, 403),
    ({"aud": None}, 403),
    ({"signed_by": "somebody else"}, 401),
    ({"org": None}, 403),
    ({"org": {}}, 403),
    ({"org": {"id": ""}}, 403),
    ({"org": {"id": None}}, 403),
    ({"org": "acme"}, 403),
    ({"org": {"id": "a\nx-attache-tenant: b"}}, 403),
]


@pytest.mark.parametrize(("claims", "status"), REFUSED_TOKENS, ids=str)
@pytest.mark.parametrize("path", ["/v1/responses/resp_1", "/v1/models"])
async def test_token_that_is_not_valid_or_names_no_tenant_is_refused(
    token_stage: Stage, path: str, claims: dict[str, Any], status: int
) -> None:
    credential = token(**{"org": {"id": "acme"}, **claims})

    answer = await token_stage.client.get(path, headers=bearer(credential))

    assert (answer.status_code, answer.json()) == (status, UNAUTHENTICATED if status == 401 else FORBIDDEN)


async def test_token_without_a_signature_or_signed_with_the_public_key_is_401(token_stage: Stage) -> None:
    claims = {"iss": ISSUER, "aud": AUDIENCE, "exp": 2**33, "org": {"id": "acme"}}
    unsigned = jwt.encode(claims, "", algorithm="none")

    for credential in (unsigned, signed_with_public_key(claims), "a.b.c", "..", token(org={"id": "acme"})[:-4]):
        answer = await token_stage.client.get("/v1/responses/resp_1", headers=bearer(credential))

        assert (answer.status_code, answer.json()) == (401, UNAUTHENTICATED)


ODD_TENANTS: list[Any] = [
    "é" * 512,
    "a%41",
    "aA",
    "ACME",
    "acme ",
    "'; --",
    "default",
    "租户🙂",
    7,
    True,
    "a, b",
    ["acme"],
]


async def test_odd_tenants_are_all_apart(token_stage: Stage, stream: bool) -> None:
    made: dict[str, str] = {}
    for tenant in ODD_TENANTS:
        token_stage.model.play(text("Hi."))
        body = {"model": "m", "input": "Hi", "stream": stream}
        answer = await token_stage.post(body, dict(bearer(token(org={"id": tenant}))))
        made[str(tenant)] = check(answer).body["id"]

    with closing(sqlite3.connect(token_stage.storage)) as database:
        stored = dict(database.execute("SELECT id, tenant FROM responses").fetchall())
    assert len({stored[made[str(tenant)]] for tenant in ODD_TENANTS}) == len(ODD_TENANTS)
    for tenant in ODD_TENANTS:
        asking = bearer(token(org={"id": tenant}))
        read = [await token_stage.client.get(f"/v1/responses/{each}", headers=asking) for each in made.values()]
        assert [answer.status_code == 200 for answer in read] == [name == str(tenant) for name in made]


async def test_tenant_that_can_be_no_key_of_a_store_is_403(token_stage: Stage, stream: bool) -> None:
    for tenant in ("é" * 513, "x" * 1025):
        asking = dict(bearer(token(org={"id": tenant})))

        turn = await token_stage.post({"model": "m", "input": "Hi", "stream": stream}, asking)
        read = await token_stage.client.get("/v1/responses/resp_1", headers=asking)

        for status, told in ((turn.status, turn.body), (read.status_code, read.json())):
            assert (status, told["error"]["code"]) == (403, "permission_denied")


async def test_keys_of_an_issuer_are_fetched_and_its_tokens_taken(placement: str, tmp_path: Path) -> None:
    fetched: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        fetched.append((await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")[0])
        writer.write(http_answer(200, {"content-type": "application/json"}, key_set().encode()))
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        yaml = jwt_yaml(f'jwks_url: "http://127.0.0.1:{port}/keys?x=1"')
        async with open_stage(placement, tmp_path, gateway_yaml=yaml) as stage:
            stage.model.play(text("Hi."))
            stage.client.headers.update(bearer(token(org={"id": "acme"})))
            check(await stage.ask(input="Hi"))
        server.close()
    assert set(fetched) == {"GET /keys?x=1 HTTP/1.1"}


async def test_issuer_that_is_out_of_reach_lets_nobody_in_and_the_gateway_starts(
    placement: str, tmp_path: Path
) -> None:
    yaml = jwt_yaml("jwks_url: 'http://127.0.0.1:1/keys'")
    async with open_stage(placement, tmp_path, gateway_yaml=yaml) as stage:
        answer = await stage.client.get("/v1/models", headers=bearer(token(org={"id": "acme"})))
    assert (answer.status_code, answer.json()) == (401, UNAUTHENTICATED)
