"""Pages of the web, as a model is told of them: opened whole, or searched for a text.

Knows the outbound policy of the section `web_search` and its bounds; is unaware of searches and items. A page is asked
for without cookies and credentials. What goes wrong is told in our words, never a server's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from attache_core.errors import ToolError
from attache_core.tools.outbound.fetch import Answer, ExchangeLimits, Exchanges, OutboundRequest
from attache_core.tools.outbound.policy import OutboundPolicy
from attache_core.tools.web_search.declaration import SearchScope
from attache_core.tools.web_search.find import find_in_text
from attache_core.tools.web_search.page_text import PageText, page_text
from attache_core.tools.web_search.results import NOT_INSTRUCTIONS, Source, is_in_domains
from attache_core.tools.web_search.settings import SECTION, WebSearchSettings

MAX_PAGES_READ = 4
"""Pages that a process turns into text, or looks through, at once; a further one waits."""

_threads = ThreadPoolExecutor(MAX_PAGES_READ, thread_name_prefix="page-reader")

T = TypeVar("T")

_HEADERS = {
    "accept": "text/html, application/xhtml+xml, text/markdown, text/plain, */*;q=0.5",
    "user-agent": "Mozilla/5.0 (compatible; Attache)",
}


class PageError(ToolError):
    """The page cannot be shown; the message is for the model."""


@dataclass(frozen=True, slots=True)
class _Page:
    url: str
    content: PageText
    cut: bool

    @property
    def source(self) -> Source:
        return Source(self.url, self.content.title or self.url)

    @property
    def head(self) -> str:
        title = f"{self.content.title}\n" if self.content.title else ""
        return f"{NOT_INSTRUCTIONS}\n\n{title}{self.url}"


class Pages:
    """Reads pages."""

    def __init__(self, settings: WebSearchSettings, exchanges: Exchanges) -> None:
        self._settings = settings
        self._exchanges = exchanges
        self._policy = OutboundPolicy(SECTION, settings)
        self._limits = ExchangeLimits(settings.page_timeout_s, settings.max_page_bytes, settings.max_redirects)

    async def open(self, url: str, scope: SearchScope) -> tuple[str, Source]:
        """The page for the model.

        Raises:
            ToolError: it cannot be shown; the message is for the model.
        """
        limit = self._settings.max_page_chars
        page = await self._page(url, scope, limit)
        text = page.content.text
        cut = page.cut or len(text) > limit
        note = f"\n\n[Cut off here: the first {min(limit, len(text))} characters.]" if cut else ""
        return f"{page.head}\n\n{text[:limit] or '[The page has no text.]'}{note}", page.source

    async def find(self, url: str, pattern: str, scope: SearchScope) -> tuple[str, Source]:
        """The places of a text in the page for the model. Raises ToolError as `open`."""
        page = await self._page(url, scope, self._settings.max_page_bytes)
        max_matches = self._settings.max_matches
        context_chars = self._settings.match_context_chars
        found = await _in_thread(
            partial(find_in_text, page.content.text, pattern, context_chars=context_chars, max_matches=max_matches)
        )
        told = [f"{page.head}\n\n{found.count} found for {pattern!r}.", *found.excerpts]
        if found.count > max_matches:
            told.append(f"[The first {max_matches} are shown.]")
        if page.cut:
            told.append(f"[Only the first {self._settings.max_page_bytes} bytes of the page were read.]")
        return "\n\n".join(told), page.source

    async def _page(self, url: str, scope: SearchScope, max_chars: int) -> _Page:
        _require_in_scope(url, scope)
        answer = await self._exchanges.fetch(OutboundRequest(url, headers=_HEADERS), self._policy, self._limits)
        _require_in_scope(answer.url, scope)
        _require_success(answer)
        kind = answer.headers.get("content-type", "text/html")
        content = await _in_thread(partial(page_text, answer.body, kind, answer.url, max_chars))
        return _Page(answer.url, content, answer.cut)


async def _in_thread(read: Callable[[], T]) -> T:
    """A page of the worst kind takes a while to read, and only other pages should wait for it."""
    return await asyncio.get_running_loop().run_in_executor(_threads, read)


def _require_success(answer: Answer) -> None:
    if 300 <= answer.status < 400:
        raise PageError("The page redirects too often, or to nowhere.")
    if answer.status != 200:
        raise PageError(f"The page's server answered with HTTP status {answer.status}.")


def _require_in_scope(url: str, scope: SearchScope) -> None:
    """The request's domain filters are about pages that are opened as well."""
    if scope.allowed_domains and not is_in_domains(url, scope.allowed_domains):
        raise PageError("The page is not in the domains that this request allows.")
    if is_in_domains(url, scope.blocked_domains):
        raise PageError("The page is in a domain that this request blocks.")
