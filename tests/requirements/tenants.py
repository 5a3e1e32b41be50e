"""Several tenants on one gateway: who they are, and that none sees anything of another."""

from __future__ import annotations

from requirements.requirement import Requirement, within
from requirements.sources import ENVOY, ERRORS, bug

_TENANTS = "tests/e2e/test_tenants.py"
_LITELLM = bug("BerriAI/litellm", 39548)

REQUIREMENTS = (
    Requirement(
        "tenant-endpoints",
        _LITELLM,
        "Every endpoint with every verb answers 404 for another tenant's id, as for an id that nobody has.",
        (
            *within(
                _TENANTS,
                "test_every_endpoint_answers_404_for_the_id_of_another_tenant_and_changes_nothing",
                "test_two_tenants_with_the_same_ids_each_see_their_own",
            ),
            "tests/filters/builtin/test_resources.py",
        ),
    ),
    Requirement(
        "tenant-turns",
        bug("ogx-ai/ogx", 4834),
        "No turn continues, reads, refers to or approves what is another tenant's.",
        within(
            _TENANTS,
            "test_no_turn_builds_on_what_is_another_tenants",
            "test_approval_of_another_tenant_cannot_be_given",
        ),
    ),
    Requirement(
        "tenant-from-envoy",
        bug("vllm-project/agentic-api", 107),
        "The tenant is what Envoy verified, never what a client's header says.",
        (
            *within(_TENANTS, "test_headers_of_ours_that_a_client_sends_gain_nothing"),
            "tests/filters/test_tenant.py",
        ),
    ),
    Requirement(
        "tenant-credentials",
        ERRORS,
        "Without a valid credential every request but those for health and readiness is 401, as an SDK expects it.",
        within(
            _TENANTS,
            "test_request_without_a_valid_credential_is_401_everywhere",
            "test_health_and_readiness_need_no_credential",
            "test_sdk_sends_a_key_of_its_tenant_and_any_other_is_an_authentication_error",
        ),
    ),
    Requirement(
        "tenant-tokens",
        f"{ENVOY}/configuration/http/http_filters/jwt_authn_filter",
        "A token is taken when its issuer signed it, it has not expired, it is meant for this gateway, and it names a "
        "tenant; any such name is a tenant of its own.",
        within(
            _TENANTS,
            "test_token_that_is_not_valid_or_names_no_tenant_is_refused",
            "test_token_without_a_signature_or_signed_with_the_public_key_is_401",
            "test_odd_tenants_are_all_apart",
            "test_tenant_that_can_be_no_key_of_a_store_is_403",
            "test_keys_of_an_issuer_are_fetched_and_its_tokens_taken",
            "test_issuer_that_is_out_of_reach_lets_nobody_in_and_the_gateway_starts",
        ),
    ),
    Requirement(
        "tenant-secrets",
        bug("praxis-proxy/ai", 880),
        "A client's credential reaches no inference server; no key is shown; the gateway may have a key of its own.",
        (
            *within(
                _TENANTS,
                "test_credential_of_a_client_reaches_no_inference_server",
                "test_inference_server_is_asked_with_the_gateways_own_key",
            ),
            "tests/envoy/gateway/test_authentication.py",
            *within(
                "tests/envoy/cli/test_commands.py",
                "test_render_shows_no_keys",
                "test_validate_shows_no_keys_of_what_envoy_quotes",
            ),
        ),
    ),
)
