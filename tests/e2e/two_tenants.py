"""Clients of two tenants, and gateways that tell them apart: by keys, and by tokens of an issuer."""

from __future__ import annotations

import base64
import hmac
import json
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import httpx
import jwt
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm

from e2e.stage import Stage, open_stage

ACME_KEY = "acme-0123456789-canary"
ACME_NEW_KEY = "acme-%41%s-9876543210"
GLOBEX_KEY = "globex-0123456789-canary"
UPSTREAM_KEY = "upstream-%s-0123456789"

API_KEYS = f"""
authentication:
  api_keys:
    acme: ["{ACME_KEY}", "{ACME_NEW_KEY}"]
    "glöbex %41": "{GLOBEX_KEY}"
"""
ISSUER = "https://issuer.example"
AUDIENCE = "attache"


@cache
def signing_key(_name: str) -> ec.EllipticCurvePrivateKey:
    """A private key, the same for each name while the tests run."""
    return ec.generate_private_key(ec.SECP256R1())


def key_set() -> str:
    """The public half of the issuer's key, as a JSON Web Key Set."""
    key = json.loads(ECAlgorithm.to_jwk(signing_key("ours").public_key()))
    return json.dumps({"keys": [{**key, "kid": "1", "alg": "ES256", "use": "sig"}]})


def token(signed_by: str = "ours", **claims: Any) -> str:
    """A token that is right for an hour, but for what `claims` says; a claim that is None is left out."""
    given = {"iss": ISSUER, "aud": AUDIENCE, "exp": int(time.time()) + 3600, **claims}
    kept = {name: value for name, value in given.items() if value is not None}
    return jwt.encode(kept, signing_key(signed_by), algorithm="ES256", headers={"kid": "1"})


def signed_with_public_key(claims: Mapping[str, Any]) -> str:
    """A token that says it is signed with a shared secret, and takes what everybody knows for the secret."""
    head, body = (encoded(json.dumps(part).encode()) for part in ({"alg": "HS256", "kid": "1"}, claims))
    signature = hmac.digest(key_set().encode(), f"{head}.{body}".encode(), "sha256")
    return f"{head}.{body}.{encoded(signature)}"


def encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def jwt_yaml(source: str) -> str:
    """The section for tokens whose claim `org.id` names the tenant."""
    claims = f"issuer: {ISSUER}, audiences: [{AUDIENCE}], tenant_claim: org.id"
    return f"authentication: {{jwt: {{{claims}, {source}}}}}\n"


@dataclass(frozen=True)
class Tenants:
    """A stage, seen by a client of each of two tenants."""

    one: Stage
    other: Stage


@asynccontextmanager
async def open_tenants(placement: str, folder: Path, kind: str, **fields: Any) -> AsyncIterator[Tenants]:
    """A stage that takes keys or tokens, and clients that have one each."""
    keys = folder / "jwks.json"
    keys.write_text(key_set())
    section = API_KEYS if kind == "api_keys" else jwt_yaml(f"jwks_file: {keys}")
    theirs = {"api_keys": (ACME_KEY, GLOBEX_KEY), "jwt": (token(org={"id": "acme"}), token(org={"id": "glöbex %41"}))}
    yaml = section + fields.pop("gateway_yaml", "")
    async with open_stage(placement, folder, gateway_yaml=yaml, **fields) as stage:
        one, other = (bearer(credential) for credential in theirs[kind])
        stage.client.headers.update(one)
        async with httpx.AsyncClient(base_url=stage.gateway.url, timeout=stage.client.timeout, headers=other) as client:
            yield Tenants(stage, replace(stage, client=client))


def bearer(credential: str) -> Mapping[str, str]:
    """The header that a client sends it in."""
    return {"authorization": f"Bearer {credential}"}
