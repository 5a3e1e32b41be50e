"""Searches: a batch of queries, asked of the provider at once, and what the model is told of it.

Knows the bounds and what a provider's HTTP status means; is unaware of which provider it is. A query that fails harms
no other. What goes wrong is told in our words: a provider's own could repeat its key.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice

from attache_core import json_codec
from attache_core.errors import ToolError
from attache_core.tools.outbound.fetch import Answer, ExchangeLimits, Exchanges
from attache_core.tools.outbound.policy import OutboundError, OutboundPolicy
from attache_core.tools.outbound.settings import OutboundSettings
from attache_core.tools.task_scope import task_scope
from attache_core.tools.web_search.actions import Search
from attache_core.tools.web_search.declaration import SearchScope
from attache_core.tools.web_search.providers.provider import SearchProvider, SearchQuery
from attache_core.tools.web_search.results import (
    NOT_INSTRUCTIONS,
    SearchResult,
    Source,
    is_in_domains,
    told_results,
)
from attache_core.tools.web_search.settings import SECTION, WebSearchSettings

_log = logging.getLogger(__name__)

MAX_RESULTS_READ = 500
"""Of one answer; those after them are not looked at."""

_OPERATORS_CHOICE = OutboundPolicy(SECTION, OutboundSettings(allow_private_addresses=True))
"""The provider's URL is in the gateway file, or is the provider's own: nobody else has a say in it."""

_REFUSALS: Mapping[int, str] = {
    400: "The search provider did not understand the query.",
    401: "The search provider does not accept the gateway's key.",
    402: "The gateway's plan with the search provider is used up.",
    403: "The search provider refused the gateway's request.",
    422: "The search provider did not understand the query.",
    432: "The gateway's plan with the search provider is used up.",  # Tavily
    433: "The gateway's plan with the search provider is used up.",  # Tavily, paid as used
}


class SearchFailedError(ToolError):
    """No query came to an answer; the message is for the model."""


@dataclass(frozen=True, slots=True)
class _Outcome:
    query: str
    results: tuple[SearchResult, ...] = ()
    failure: str | None = None


class Searches:
    """Asks one provider, for all turns of a worker process."""

    def __init__(self, provider: SearchProvider, settings: WebSearchSettings, exchanges: Exchanges) -> None:
        self._provider = provider
        self._exchanges = exchanges
        self._limits = ExchangeLimits(settings.search_timeout_s, settings.max_answer_bytes)
        self._slots = asyncio.Semaphore(settings.max_parallel_queries)

    async def run(self, search: Search, scope: SearchScope) -> tuple[str, tuple[Source, ...]]:
        """The results for the model, in the order of the queries, and the pages among them, each once.

        Raises:
            SearchFailedError: every query failed.
        """
        async with task_scope() as tasks:
            running = [tasks.start(self._ask(query, search, scope)) for query in search.queries]
            outcomes = [await outcome for outcome in running]
        if all(outcome.failure for outcome in outcomes):
            raise SearchFailedError("\n".join(dict.fromkeys(str(outcome.failure) for outcome in outcomes)))
        told = [_told(outcome, scope) for outcome in outcomes]
        sources = {result.url: result.source for outcome in outcomes for result in outcome.results}
        return "\n\n".join([NOT_INSTRUCTIONS, *told]), tuple(sources.values())

    async def _ask(self, query: str, search: Search, scope: SearchScope) -> _Outcome:
        asked = SearchQuery(
            query, scope.max_results, search.recency, scope.allowed_domains, scope.blocked_domains, scope.location
        )
        async with self._slots:
            try:
                request = self._provider.request(asked)
                answer = await self._exchanges.fetch(request, _OPERATORS_CHOICE, self._limits)
            except OutboundError as error:
                return self._failed(query, f"The search provider cannot be used: {error.reason}.")
        if answer.status != 200 or answer.cut:
            return self._failed(query, _failure(answer), answer.status)
        try:
            found = json_codec.decode(answer.body)
        except ValueError:
            return self._failed(query, "The search provider's answer cannot be read.", answer.status)
        return _Outcome(query, self._kept(found, scope))

    def _kept(self, answer: object, scope: SearchScope) -> tuple[SearchResult, ...]:
        """The provider filters as well as it can; here it is made sure."""
        read = islice(self._provider.results(answer), MAX_RESULTS_READ)
        found = {result.url: result for result in read if result is not None}
        kept = [
            result
            for url, result in found.items()
            if (not scope.allowed_domains or is_in_domains(url, scope.allowed_domains))
            and not is_in_domains(url, scope.blocked_domains)
        ]
        return tuple(kept[: scope.max_results])

    def _failed(self, query: str, failure: str, status: int | None = None) -> _Outcome:
        _log.warning("A search with %s failed (HTTP status %s): %s", self._provider.name, status, failure)
        return _Outcome(query, failure=failure)


def _told(outcome: _Outcome, scope: SearchScope) -> str:
    if outcome.failure is not None:
        return f"No results for {outcome.query!r}: {outcome.failure}"
    return told_results(outcome.query, outcome.results, scope.max_snippet_chars)


def _failure(answer: Answer) -> str:
    if answer.status == 200:
        return "The search provider's answer is larger than the gateway's web_search.max_answer_bytes."
    if answer.status == 429:
        wait = answer.headers.get("retry-after", "")
        return "The search provider's rate limit is reached" + (
            f"; it may answer again in {wait} s." if wait.isascii() and wait.isdigit() and len(wait) < 8 else "."
        )
    return _REFUSALS.get(answer.status) or f"The search provider failed (HTTP status {answer.status})."
