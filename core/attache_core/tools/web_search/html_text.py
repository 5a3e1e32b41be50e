"""HTML as text that a model can read: paragraphs, headings, lists, links as `[words](url)`; no scripts, no styles.

Tolerant of any input, bounded in what it makes, and of the standard library alone. Is no browser: what a script would
show is not there, and what a style would hide is. Pure.
"""

from __future__ import annotations

import re
from html.parser import HTMLParser
from urllib.parse import urljoin

from attache_core.tools.web_search.results import MAX_TITLE_CHARS, is_web_url, printable

MAX_LINKS = 500
"""Further links are shown by their words alone."""

MAX_TARGETS = 4000
"""So many links are looked at for where they lead; those that lead to no other page are not shown as links."""

MAX_TAGS = 100_000
"""A page is read up to here."""

_PIECE_CHARS = 32 * 1024
_SKIPPED = frozenset({"script", "style", "noscript", "template", "svg", "iframe", "object", "select", "textarea"})
_BLOCKS = frozenset(
    {"p", "div", "section", "article", "header", "footer", "main", "nav", "aside", "table", "ul", "ol", "dl", "pre"}
    | {"blockquote", "figure", "form", "fieldset", "h1", "h2", "h3", "h4", "h5", "h6", "body", "hr", "address"}
)
_LINES = frozenset({"br", "tr", "dt", "dd", "li", "option", "figcaption", "caption", "summary"})
_BEFORE = {"li": "- ", **{f"h{level}": "#" * level + " " for level in range(1, 7)}}
_SPACE = re.compile(r"[ \t\r\n\f\v\u00a0]+")
_BLANK_LINES = re.compile(r"[ \t]*\n[ \t]*(?:\n\s*)+")


_MAX_TAG_CHARS = 8192
_ANGLE = re.compile(
    r"""<!--.*?(?:-->|\Z)|<[!?][^>]*+(?:>|\Z)"""
    r"""|</?[a-zA-Z](?:[^<>"']++|"[^"<]*+"|'[^'<]*+')*+>|</?[a-zA-Z][^<>]*+>|<""",
    re.DOTALL,
)
"""A comment, a declaration, a tag, or a bracket that begins none of them."""

_TAG = re.compile(r"<(/?[a-zA-Z][a-zA-Z0-9:_-]{0,40})")
_ATTRIBUTE = re.compile(r"""([^\s=>"'/]++)(?:\s*+=\s*+("[^"]*+"|'[^']*+'|[^\s>]*+))?+""")


class _EnoughError(Exception):
    """As much was read as is wanted."""


def text_of_html(markup: str, base_url: str, max_chars: int) -> tuple[str, str]:
    """The title and the text of a page; each may be empty.

    Reading stops with the run of text in which `max_chars` are reached; it is returned as far as it goes.
    """
    markup = _ANGLE.sub(_well_formed, markup)
    reader = _Reader(base_url, max_chars)
    try:
        for start in range(0, len(markup), _PIECE_CHARS):
            reader.feed(markup[start : start + _PIECE_CHARS])
        reader.close()
    except (_EnoughError, AssertionError):
        pass  # html.parser asserts what some broken declarations do not keep
    return reader.title, reader.text


def _well_formed(angle: re.Match[str]) -> str:
    """What html.parser is to see of it: a tag with the one attribute that is read.

    It searches the rest of the page for the end of each thing that has none, and the rest of a tag for the end of each
    attribute.
    """
    found = angle[0]
    if found == "<":
        return "&lt;"
    tag = _TAG.match(found)
    if tag is None or len(found) > _MAX_TAG_CHARS:
        return ""
    link = _href(found[tag.end() :]) if tag[1] in ("a", "A") else None
    end = "/>" if _is_empty(found) else ">"
    return f"<{tag[1]}{end}" if link is None else f'<{tag[1]} href="{link}"{end}'


def _is_empty(tag: str) -> bool:
    """Whether it is its own end; the slash may also be the last of a value without quotes."""
    return tag.endswith("/>") and tag[1] != "/" and ("=" not in tag or tag[-3] in "\"' \t\r\n\f")


def _href(attributes: str) -> str | None:
    """The first `href` among a tag's attributes, as it may stand in double quotes."""
    for attribute in _ATTRIBUTE.finditer(attributes):
        if attribute[1].lower() == "href":
            value = attribute[2] or ""
            quoted = value[:1] in ("'", '"') and value[:1] == value[-1:]
            return (value[1:-1] if quoted else value).replace('"', "&quot;")
    return None


class _Reader(HTMLParser):
    def __init__(self, base_url: str, max_chars: int) -> None:
        super().__init__(convert_charrefs=True)
        self._base_url = base_url
        self._chars_left = max_chars
        self._pieces: list[str] = []
        self._title: list[str] = []
        self._in_title = False
        self._titled = False
        self._skipped: str | None = None
        self._preformatted = 0
        self._link: tuple[str, int] | None = None
        self._links_left = MAX_LINKS
        self._targets_left = MAX_TARGETS
        self._tags_left = MAX_TAGS

    @property
    def title(self) -> str:
        return printable(_SPACE.sub(" ", "".join(self._title))).strip()[:MAX_TITLE_CHARS]

    @property
    def text(self) -> str:
        return _BLANK_LINES.sub("\n\n", printable("".join(self._pieces))).strip()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._tags_left -= 1
        if self._tags_left < 0:
            raise _EnoughError
        if self._skipped is not None:
            return
        if tag in _SKIPPED:
            self._skipped = tag
        elif tag == "title":
            self._in_title = True
        elif tag == "a":
            self._end_link()
            self._begin_link(dict(attrs).get("href"))
        elif tag == "pre":
            self._preformatted += 1
        self._break(tag)
        self._add(_BEFORE.get(tag, ""))

    def handle_endtag(self, tag: str) -> None:
        if self._skipped is not None:
            self._skipped = None if tag in (self._skipped, "body", "html") else self._skipped
            return
        if tag == "title":
            self._in_title, self._titled = False, True
        elif tag == "a":
            self._end_link()
        elif tag == "pre":
            self._preformatted = max(self._preformatted - 1, 0)
        elif tag in ("td", "th"):
            self._add(" | ")
        self._break(tag)

    def handle_data(self, data: str) -> None:
        if self._skipped is not None:
            return
        if self._in_title:
            self._title += [] if self._titled else [data[:MAX_TITLE_CHARS]]
        else:
            self._add(data if self._preformatted else _SPACE.sub(" ", data))

    def _break(self, tag: str) -> None:
        if tag in _BLOCKS:
            self._add("\n\n")
        elif tag in _LINES:
            self._add("\n")

    def _add(self, text: str) -> None:
        if not text or (text.isspace() and self._pieces and self._pieces[-1] == text):
            return
        self._pieces.append(text)
        self._chars_left -= len(text)
        if self._chars_left < 0:
            raise _EnoughError

    def _begin_link(self, href: str | None) -> None:
        if not (self._links_left and self._targets_left):
            return
        self._targets_left -= 1
        url = _absolute(self._base_url, href)
        if url is not None:
            self._links_left -= 1
            self._link = (url, len(self._pieces))

    def _end_link(self) -> None:
        if self._link is None:
            return
        (url, start), self._link = self._link, None
        words = _SPACE.sub(" ", "".join(self._pieces[start:])).strip()
        if words:
            self._pieces[start:] = [f"[{words}]({url})"]
            self._chars_left -= len(url)


def _absolute(base_url: str, href: str | None) -> str | None:
    """A link's target, when it is another page."""
    if not href or href.startswith("#"):
        return None
    try:
        url = urljoin(base_url, href.strip())
    except ValueError:
        return None
    return url if is_web_url(url) else None
