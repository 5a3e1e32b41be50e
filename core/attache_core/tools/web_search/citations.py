"""Where a text cites pages that the model was told of: the `url_citation` annotations of a message. Pure.

A citation is a markdown link, `[words](url)`, or a bare URL, of a page that the model was shown. A link in round
brackets is cited with them, as OpenAI's own annotations do. A URL that the model made up gets none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

from attache_core.json_codec import Json
from attache_core.tools.web_search.results import Source

MAX_CITATIONS = 200
"""In one text; what is cited after them is not annotated."""

_CITED = re.compile(
    r"""\[[^\[\]\n]{0,300}\]\(<?(?P<target>https?://[^\s<>()]{1,2048}(?:\([^\s<>()]{0,300}\)[^\s<>()]{0,300}){0,5})>?\)"""
    r"""|(?P<bare>https?://[^\s<>"`\[\]]{1,2048})"""
)
_AFTER_URL = ".,;:!?'*_)"


def citations(text: str, sources: Iterable[Source]) -> list[Json]:
    """The annotations of a text, in its order; `start_index` is the first character and `end_index` the one after."""
    known = {key_of(source.url): source for source in sources}
    return list(islice(_cited(text, known), MAX_CITATIONS)) if known else []


def key_of(url: str) -> str:
    """What the spellings of a page's URL have in common."""
    return url.partition("#")[0].removesuffix("/")


def _cited(text: str, known: Mapping[str, Source]) -> Iterator[Json]:
    for match in _CITED.finditer(text):
        start, end = match.span()
        url = match["target"]
        if url is None:
            url = _trimmed(match["bare"])
            end = start + len(url)
        elif text[start - 1 : start] == "(" and text[end : end + 1] == ")":
            start, end = start - 1, end + 1
        source = known.get(key_of(url))
        if source is not None:
            yield {"type": "url_citation", "end_index": end, "start_index": start, "title": source.title, "url": url}


def _trimmed(url: str) -> str:
    """A bare URL without the punctuation that follows it; a bracket stays where it was opened in the URL."""
    end, unopened = len(url), url.count(")") - url.count("(")
    while end and url[end - 1] in _AFTER_URL and not (url[end - 1] == ")" and unopened <= 0):
        unopened -= url[end - 1] == ")"
        end -= 1
    return url[:end]
