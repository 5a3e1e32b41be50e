"""The web: where tools may reach, and what a search and a page come to."""

from __future__ import annotations

from requirements.requirement import Requirement, within
from requirements.sources import DESIGN, HTTP, WEB_SEARCH, bug

_OUTBOUND = "tests/core/tools/outbound"
_SEARCH = "tests/core/tools/web_search"

REQUIREMENTS = (
    Requirement(
        "web-outbound-policy",
        bug("modelcontextprotocol/servers", 4838),
        "A URL that somebody gave is judged in every spelling, resolved once and pinned; refusals name the setting.",
        (f"{_OUTBOUND}/test_policy.py",),
    ),
    Requirement(
        "web-outbound-turn",
        bug("modelcontextprotocol/servers", 4838),
        "Nobody inside is contacted for a page, a redirect or an MCP server, nor any proxy of the environment.",
        ("tests/e2e/test_outbound.py",),
    ),
    Requirement(
        "web-slow-resolver",
        DESIGN,
        "Names whose servers do not answer delay other names at most, and neither addresses nor any other work.",
        (f"{_OUTBOUND}/test_resolver.py",),
    ),
    Requirement(
        "web-exchanges",
        HTTP,
        "An exchange is bounded; each redirect is judged like the first URL, and credentials stay with its origin.",
        (f"{_OUTBOUND}/test_fetch.py",),
    ),
    Requirement(
        "web-secrets",
        bug("BerriAI/litellm", 35678),
        "A secret is shown by no text form of what holds it, and dumped only for a process of the gateway's own.",
        (f"{_OUTBOUND}/test_secret.py",),
    ),
    Requirement(
        "web-declaration",
        WEB_SEARCH,
        "What a declaration asks for is done or refused, and shown with its defaults; settings that cannot work fail.",
        (f"{_SEARCH}/test_declaration.py",),
    ),
    Requirement(
        "web-actions",
        WEB_SEARCH,
        "The model's arguments are one of the API's actions, or an error to it.",
        (f"{_SEARCH}/test_actions.py",),
    ),
    Requirement(
        "web-providers",
        WEB_SEARCH,
        "Each provider is asked in its own words, with its key in a header alone, and any answer becomes results.",
        (f"{_SEARCH}/test_providers.py",),
    ),
    Requirement(
        "web-searches",
        WEB_SEARCH,
        "Queries run at once within a shared bound; one that fails harms no other and is told in the gateway's words.",
        (f"{_SEARCH}/test_search.py",),
    ),
    Requirement(
        "web-pages",
        WEB_SEARCH,
        "A page is opened or searched within its bounds, without credentials, and never inside the operator's network.",
        (f"{_SEARCH}/test_pages.py",),
    ),
    Requirement(
        "web-page-text",
        WEB_SEARCH,
        "Whatever bytes a page is made of become bounded text, or the model is told that it cannot be read.",
        (f"{_SEARCH}/test_page_text.py",),
    ),
    Requirement(
        "web-item",
        WEB_SEARCH,
        "A call has the API's item and events; sources and results are shown where `include` asks for them.",
        (f"{_SEARCH}/test_item.py",),
        "A call whose arguments are none of the API's actions is shown as a search without a query.",
    ),
    Requirement(
        "web-turn",
        WEB_SEARCH,
        "Searches and pages are told to the model within one response, and the client sees what it asked for.",
        (
            "tests/core/turn/test_web_search.py",
            "tests/e2e/test_web_search.py",
            *within(
                "tests/e2e/test_tool_rounds.py",
                "test_recency_location_and_context_size_reach_the_provider_as_far_as_it_knows_them",
            ),
        ),
        "`num_requests` counts queries of searches that did not fail; what OpenAI counts is nowhere said.",
    ),
    Requirement(
        "web-citations",
        WEB_SEARCH,
        "Links to pages that the model was shown are annotated, and no others.",
        (f"{_SEARCH}/test_citations.py",),
        "Annotations of a streamed text come together before its end; OpenAI streams each one after its link.",
    ),
)
