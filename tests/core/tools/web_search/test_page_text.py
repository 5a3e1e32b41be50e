from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attache_core.tools.web_search.find import Found, find_in_text
from attache_core.tools.web_search.html_text import MAX_LINKS, MAX_TARGETS, text_of_html
from attache_core.tools.web_search.page_text import PageText, UnreadableError, page_text

BASE = "https://h.test/dir/page"


def text(html: str) -> str:
    return text_of_html(html, BASE, 10_000)[1]


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<p>One<p>Two\n  words", "One\n\nTwo words"),
        ("a<br>b<hr>c", "a\nb\n\nc"),
        ("<h2>Head</h2>text", "## Head\n\ntext"),
        ("<ul><li>x<li>y</ul>", "- x\n- y"),
        ("<table><tr><td>a</td><td>b</td></tr><tr><td>c</td></tr></table>", "a | b | \nc |"),
        ("<pre>a\n  b</pre>c", "a\n  b\n\nc"),
        ("&lt;b&gt; &amp; &#8364;&nbsp;&euro;", "<b> & \u20ac \u20ac"),
        ("<style>a{}</style>x<script>if (1<2) alert('</p>')</script>y<noscript>n</noscript>z", "xyz"),
        ("a<!-- <p>no --> b", "a b"),
        ("a <!-- unclosed <p>b", "a"),
        ("1 < 2 <b>and</b> 3<4", "1 < 2 and 3<4"),
        ('<a href="../x?q=1#f">go <b>there</b></a>', "[go there](https://h.test/x?q=1#f)"),
        ("<a href='//o.test/'>o</a> <a href=mailto:x>m</a> <a href='#f'>f</a> <a>n</a>", "[o](https://o.test/) m f n"),
        ("<a href=/x></a>e<a href=javascript:x>j</a>", "ej"),
        ("<a href=/1>one<a href=/2>two</a>", "[one](https://h.test/1)[two](https://h.test/2)"),
        ("<p title='>'>quoted", "quoted"),
        ("<p title=it's>open quote", "open quote"),
        ("x\x00\x08y\ud83d", "xy"),
        ("<svg><text>no</text></svg>yes", "yes"),
        ("<svg width='1'/>yes<br/>no<script src=x></script>", "yes\nno"),
        ("<a title=' href=/no ' HREF = '/x?a=1&amp;b=\"2\"' id=i>x</a>", '[x](https://h.test/x?a=1&b="2")'),
        ("<a data-href=/no href=/x/>x</a>", "[x](https://h.test/x/)"),
        ("", ""),
    ],
)
def test_html_is_told_as_text(html: str, expected: str) -> None:
    assert text(html) == expected


def test_title_is_the_first_one_and_no_part_of_the_text() -> None:
    html = "<head><title> A\n &amp; B </title></head><title>other</title><p>x"
    assert text_of_html(html, BASE, 100) == ("A & B", "x")


def test_links_are_shown_up_to_their_bound() -> None:
    told = text("<a href=/x>y</a> " * (MAX_LINKS + 2))
    assert (told.count("]("), told.endswith(" y y")) == (MAX_LINKS, True)


PIECES = (
    "<", ">", "</", "<!--", "-->", "<!", "<?", "<![CDATA[", "]]>", "<a href='", "<a href=/x>", "</a>", "<p>", "<td>",
    "<script>", "</script>", "<title>", "</title>", "&#", "&amp", "<pre>", "</pre>", "'", '"', "<svg>", "\x00",
)  # fmt: skip
markup = st.lists(st.text(max_size=20) | st.sampled_from(PIECES), max_size=40).map("".join)


@given(html=markup, limit=st.integers(1, 200))
def test_any_markup_is_bounded_text(html: str, limit: int) -> None:
    title, told = text_of_html(html, BASE, limit)
    assert len(title) <= 300
    assert len(told) <= limit + len(html) + len(BASE)
    f"{title}{told}".encode()


TYPES = [
    "text/html",
    "text/html; charset=utf-16",
    "text/plain",
    "application/json; charset=x",
    "application/atom+xml",
    "",
]


@given(
    body=st.binary(max_size=300) | markup.map(lambda value: value.encode(errors="replace")), kind=st.text(max_size=30)
)
@pytest.mark.parametrize("known", [*TYPES, None])
def test_any_bytes_of_any_type_are_bounded_text_or_unreadable(body: bytes, kind: str, known: str | None) -> None:
    try:
        page = page_text(body, kind if known is None else known, BASE, 100)
    except UnreadableError as error:
        page = PageText("", error.message)
    assert len(page.text) <= 250 + len(body) * 2 + len(BASE)
    f"{page.title}{page.text}".encode()


@pytest.mark.parametrize(
    "piece", ["<", "<!--", "<a ", "</", "<p>", "<a href='", "<td", "&#", "<script>", "<![CDATA[", "\n "]
)
def test_hostile_page_is_read_within_its_bounds(piece: str) -> None:
    """Each of these makes a parser that looks for ends search the rest of the page again and again."""
    text_of_html(piece * (100_000 // len(piece)), BASE, 100_000)


def test_links_that_lead_nowhere_are_looked_at_up_to_their_bound() -> None:
    """To find out that a name has letters which no host may have takes longer than to read it."""
    nowhere, there = '<a href="http://\u2603.test/">x</a>', '<a href="/there">there</a>'
    told = [text_of_html(nowhere * count + there, BASE, 10**6)[1] for count in (MAX_TARGETS - 1, MAX_TARGETS)]
    assert [text.endswith("/there)") for text in told] == [True, False]


def test_tags_of_many_attributes_are_read_in_time() -> None:
    """With each attribute searched for its end, a page of the largest size would take the better part of a minute."""
    assert text_of_html(("<a " + "a\n" * 4000 + '=">"') * 120, BASE, 2**20) == ("", '"' * 120)


@pytest.mark.parametrize(
    ("body", "kind", "expected"),
    [
        ("k\u00e4se".encode(), "text/plain", "k\u00e4se"),
        ("k\u00e4se".encode("latin-1"), "text/plain; charset=ISO-8859-1", "k\u00e4se"),
        (b"\x93q\x94", "text/plain; charset=us-ascii", "\u201cq\u201d"),
        ("\u8336".encode("shift_jis"), "text/html; charset=Shift_JIS", "\u8336"),
        ("<meta charset=gbk>\u8336".encode("gbk"), "text/html", "\u8336"),
        ('<?xml version="1.0" encoding="koi8-r"?><a>\u0447</a>'.encode("koi8-r"), "application/xml",
         '<?xml version="1.0" encoding="koi8-r"?><a>\u0447</a>'),
        ("\ufeff\u8336".encode("utf-16-le"), "text/plain; charset=utf-8", "\u8336"),
        (b"\xef\xbb\xbfx", "text/plain; charset=latin-1", "x"),
        (b"a\xffb", "text/plain", "a\ufffdb"),
        (b"x", "text/plain; charset=rot13", "x"),
        (b"x", "text/plain; charset=\u00e9\udcff", "x"),
        (b"x", "text/plain; charset=punycode", "x"),
        (b"x", "text/plain; charset=no\x00such", "x"),
        (b'{"a": 1}', "application/ld+json", '{"a": 1}'),
        (b"# T\n\n*x*", "text/markdown; charset=utf-8", "# T\n\n*x*"),
    ],
)  # fmt: skip
def test_bytes_are_read_in_the_encoding_that_they_are_in(body: bytes, kind: str, expected: str) -> None:
    assert page_text(body, kind, BASE, 1000).text == expected


@pytest.mark.parametrize("kind", ["image/png", "application/octet-stream", "video/mp4"])
def test_what_is_no_text_is_unreadable(kind: str) -> None:
    with pytest.raises(UnreadableError) as raised:
        page_text(b"x", kind, BASE, 1000)
    assert raised.value.message == f"The page is {kind}, which cannot be read; only HTML and texts can."


def test_text_is_no_markup_where_its_type_says_so() -> None:
    assert page_text(b"<p>x</p>", "text/plain", BASE, 1000) == PageText("", "<p>x</p>")


class TestFind:
    def test_places_near_each_other_share_an_excerpt(self) -> None:
        found = find_in_text("xx a b a yy", "a", context_chars=2, max_matches=9)
        assert found == Found(("\u2026x a b a y\u2026",), 2)

    def test_pattern_is_no_regular_expression_and_has_any_white_space(self) -> None:
        assert find_in_text("a.b\nc axb c", "A.B  c", context_chars=0, max_matches=9).excerpts == ("a.b c\u2026",)

    def test_case_is_ignored_and_every_character_keeps_its_place(self) -> None:
        found = find_in_text("\u0130 \u0130 \u039f\u03a3 x", "\u03bf\u03c3", context_chars=1, max_matches=9)
        assert found == Found(("\u2026\u039f\u03a3\u2026",), 1)

    def test_pattern_that_nearly_matches_everywhere_is_looked_for_in_time(self) -> None:
        """Comparing it anew at each place would take seconds, in which no other turn goes on."""
        assert find_in_text("a " * 500_000, "a " * 199 + "b", context_chars=1, max_matches=9) == Found((), 0)

    @pytest.mark.parametrize("pattern", ["z", " ", ""])
    def test_what_is_not_there_is_not_found(self, pattern: str) -> None:
        assert find_in_text("a b", pattern, context_chars=1, max_matches=9) == Found((), 0)

    @given(
        st.text(alphabet="ab \n", max_size=60),
        st.text(alphabet="ab ", max_size=3),
        st.integers(0, 5),
        st.integers(1, 4),
    )
    def test_excerpts_are_of_the_text_and_no_more_than_wanted(
        self, page: str, pattern: str, around: int, most: int
    ) -> None:
        found = find_in_text(page, pattern, context_chars=around, max_matches=most)
        assert len(found.excerpts) <= min(most, found.count)
        assert all(excerpt.strip("\u2026") in " ".join(page.split()) for excerpt in found.excerpts)
