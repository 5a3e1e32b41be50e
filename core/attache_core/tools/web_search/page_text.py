"""The text of a page, from the bytes that a server sent and what it said they are. Pure, tolerant and bounded.

Source: WHATWG Encoding, of which the encodings that the standard library has are known here; HTML, "determining the
character encoding".
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from email.message import Message

from attache_core.errors import ToolError
from attache_core.tools.web_search.html_text import text_of_html
from attache_core.tools.web_search.results import printable

_HTML = frozenset({"text/html", "application/xhtml+xml"})
_TEXT = frozenset(
    {"text/plain", "text/markdown", "text/csv", "text/xml", "application/xml", "application/json", "text/x-markdown"}
)
_TYPE = re.compile(r"[a-z0-9!#$&^_.+-]{1,60}/[a-z0-9!#$&^_.+-]{1,60}")
_DECLARED = re.compile(rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([a-zA-Z0-9_:.-]{1,40})""", re.IGNORECASE)
_XML_DECLARED = re.compile(rb"""^<\?xml[^>]{0,100}?encoding\s*=\s*["']([a-zA-Z0-9_:.-]{1,40})""")
_PRESCAN_BYTES = 1024
_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_ENCODINGS = frozenset(
    {"utf-8", "utf-16-le", "utf-16-be", "utf-16", "cp866", "koi8-r", "koi8-u", "mac-roman", "cp874", "mac-cyrillic"}
    | {f"cp{number}" for number in range(1250, 1259)}
    | {f"iso8859-{number}" for number in range(2, 17)}
    | {"gb2312", "gbk", "gb18030", "big5", "euc_jp", "shift_jis", "iso2022_jp", "euc_kr"}
)
"""By the names that `codecs` gives them. Others would be slow, or no encodings of texts."""

_LATIN = frozenset({"ascii", "iso8859-1"})
"""Mean windows-1252 on the web."""


class UnreadableError(ToolError):
    """It is no text."""


@dataclass(frozen=True, slots=True)
class PageText:
    """What a page says."""

    title: str
    text: str


def page_text(body: bytes, content_type: str, url: str, max_chars: int) -> PageText:
    """Read a page; `url` is the base of its links. More than `max_chars` of the text may be returned.

    Raises:
        UnreadableError: it is of a type that is no text.
    """
    kind, charset = _parsed(content_type)
    if kind in _HTML:
        return PageText(*text_of_html(_decoded(body, charset), url, max_chars))
    if kind in _TEXT or kind.endswith(("+json", "+xml")):
        return PageText("", printable(_decoded(body, charset)[: max_chars + 1]).strip())
    shown = kind if _TYPE.fullmatch(kind) else "of no type"
    raise UnreadableError(f"The page is {shown}, which cannot be read; only HTML and texts can.")


def _parsed(content_type: str) -> tuple[str, str | None]:
    message = Message()
    message["content-type"] = " ".join(content_type.encode("ascii", "replace").decode().split())
    charset = message.get_param("charset")
    return message.get_content_type() if content_type.strip() else "", charset if isinstance(charset, str) else None


def _decoded(body: bytes, charset: str | None) -> str:
    for mark, encoding in _BOMS:
        if body.startswith(mark):
            return body[len(mark) :].decode(encoding, errors="replace")
    declared = _DECLARED.search(body, 0, _PRESCAN_BYTES) or _XML_DECLARED.search(body, 0, _PRESCAN_BYTES)
    named = charset or (declared[1].decode("ascii") if declared else "utf-8")
    return body.decode(_encoding(named), errors="replace")


def _encoding(label: str) -> str:
    try:
        name = codecs.lookup(label.strip("\"' ")).name
    except (LookupError, ValueError, UnicodeError):
        return "utf-8"
    if name in _LATIN:
        return "cp1252"
    return name if name in _ENCODINGS else "utf-8"
