"""The section `authentication` as Envoy's own filters: who sent a request is known before any of ours sees it.

Three invariants make the tenant trustworthy. The header that carries it is removed from what clients send before a
filter runs (`http_filters`); it is set only from a credential that Envoy verified; and a request without it goes no
further. The credential itself is taken out of the request, so that no inference server gets it.
Source: the filters `api_key_auth`, `jwt_authn` and `rbac` of Envoy.
"""

from __future__ import annotations

from collections.abc import Mapping

from envoy_data_plane.envoy.config.core.v3 import DataSource, HttpUri
from envoy_data_plane.envoy.config.rbac.v3 import Permission, Policy, Principal, Rbac, RbacAction
from envoy_data_plane.envoy.config.route.v3 import FilterConfig, HeaderMatcher, RouteMatch
from envoy_data_plane.envoy.extensions.filters.http.api_key_auth.v3 import (
    ApiKeyAuth,
    Credential,
    Forwarding,
    KeySource,
)
from envoy_data_plane.envoy.extensions.filters.http.jwt_authn.v3 import (
    JwksAsyncFetch,
    JwtAuthentication,
    JwtClaimToHeader,
    JwtHeader,
    JwtProvider,
    JwtRequirement,
    RemoteJwks,
    RequirementRule,
)
from envoy_data_plane.envoy.extensions.filters.http.rbac.v3 import Rbac as RbacFilter
from envoy_data_plane.envoy.extensions.filters.network.http_connection_manager.v3 import HttpFilter
from envoy_data_plane.envoy.type.matcher.v3 import RegexMatcher, StringMatcher
from envoy_data_plane.google.protobuf import Any as AnyMessage

from attache_envoy.compile.messages import packed, seconds
from attache_envoy.gateway.authentication import Authentication, ClientKey
from attache_envoy.gateway.authentication import JwtAuthentication as JwtSection
from attache_filters.extproc.headers import VERIFIED_TENANT

JWKS_CLUSTER = "jwks"
_CREDENTIAL_FILTER = "attache.authentication"
_TENANT_FILTER = "attache.tenant"


def authentication_filters(authentication: Authentication | None) -> list[HttpFilter]:
    """What every request passes before all filters of chains; nothing where no credentials are asked for."""
    if authentication is None:
        return []
    method = _keys(authentication.api_keys) if authentication.jwt is None else _tokens(authentication.jwt)
    return [
        HttpFilter(name=_CREDENTIAL_FILTER, typed_config=packed(method)),
        HttpFilter(name=_TENANT_FILTER, typed_config=packed(_with_tenant_only())),
    ]


def open_to_all(authentication: Authentication | None) -> dict[str, AnyMessage]:
    """What switches these filters off on a route."""
    off = packed(FilterConfig(disabled=True))
    return {each.name: off for each in authentication_filters(authentication)}


def _keys(tenants: Mapping[str, tuple[ClientKey, ...]] | None) -> ApiKeyAuth:
    return ApiKeyAuth(
        credentials=[
            Credential(key=key.reveal(), client=tenant) for tenant, keys in (tenants or {}).items() for key in keys
        ],
        key_sources=[KeySource(header="authorization")],
        forwarding=Forwarding(header=VERIFIED_TENANT, hide_credentials=True),
    )


def _tokens(jwt: JwtSection) -> JwtAuthentication:
    provider = JwtProvider(
        issuer=jwt.issuer,
        audiences=list(jwt.audiences),
        require_expiration=True,
        remote_jwks=_remote(jwt),
        local_jwks=None if jwt.jwks_file is None else DataSource(filename=str(jwt.jwks_file)),
        # Said by name: by default Envoy looks for tokens in the query string as well, which ends up in logs.
        from_headers=[JwtHeader(name="authorization", value_prefix="Bearer ")],
        clock_skew_seconds=jwt.clock_skew_s,
        claim_to_headers=[JwtClaimToHeader(header_name=VERIFIED_TENANT, claim_name=jwt.tenant_claim)],
    )
    everything = RequirementRule(match=RouteMatch(prefix="/"), requires=JwtRequirement(provider_name="issuer"))
    return JwtAuthentication(providers={"issuer": provider}, rules=[everything])


def _remote(jwt: JwtSection) -> RemoteJwks | None:
    if jwt.jwks_url is None:
        return None
    return RemoteJwks(
        http_uri=HttpUri(uri=jwt.jwks_url, cluster=JWKS_CLUSTER, timeout=seconds(jwt.jwks_timeout_s)),
        cache_duration=seconds(jwt.jwks_ttl_s),
        # Fetched before the first request and then in the background: no request waits for the issuer.
        async_fetch=JwksAsyncFetch(failed_refetch_duration=seconds(1)),
    )


def _with_tenant_only() -> RbacFilter:
    """Lets pass what has a tenant: a valid token may lack the claim, or have it empty."""
    has_tenant = HeaderMatcher(name=VERIFIED_TENANT, string_match=StringMatcher(safe_regex=RegexMatcher(regex=".+")))
    policy = Policy(permissions=[Permission(any=True)], principals=[Principal(header=has_tenant)])
    return RbacFilter(rules=Rbac(action=RbacAction.ALLOW, policies={"tenant": policy}))
