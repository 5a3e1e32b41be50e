from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attache_core.events.model_events import (
    AnnotationAdded,
    Delta,
    Finished,
    ItemAdded,
    ItemDone,
    ModelEvent,
    PartAdded,
    PartDone,
)
from attache_core.json_codec import Json
from attache_core.tools.web_search.citations import MAX_CITATIONS, citations
from attache_core.tools.web_search.citing import Citing
from attache_core.tools.web_search.item import call_ended
from attache_core.tools.web_search.results import Source
from core.events.pipeline import sequenced
from core.events.recordings import all_recorded

TEA = Source("https://h.test/tea", "Tea")
WIKI = Source("https://w.test/Tea_(plant)", "Plant")
ROOT = Source("https://r.test/", "Root")


def cited(text: str) -> list[tuple[str, str, str]]:
    """What is cited: the words, the title and the URL."""
    found = citations(text, [TEA, WIKI, ROOT])
    assert all(set(entry) == {"type", "start_index", "end_index", "title", "url"} for entry in found)
    return [(text[entry["start_index"] : entry["end_index"]], entry["title"], entry["url"]) for entry in found]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Hot ([h](https://h.test/tea)).", [("([h](https://h.test/tea))", "Tea", "https://h.test/tea")]),
        ("[Hot](https://h.test/tea#x) tea", [("[Hot](https://h.test/tea#x)", "Tea", "https://h.test/tea#x")]),
        ("[](<https://h.test/tea/>)", [("[](<https://h.test/tea/>)", "Tea", "https://h.test/tea/")]),
        ("see https://h.test/tea.", [("https://h.test/tea", "Tea", "https://h.test/tea")]),
        ("(https://h.test/tea)", [("https://h.test/tea", "Tea", "https://h.test/tea")]),
        ("**https://h.test/tea**", [("https://h.test/tea", "Tea", "https://h.test/tea")]),
        ("https://w.test/Tea_(plant)!", [("https://w.test/Tea_(plant)", "Plant", "https://w.test/Tea_(plant)")]),
        ("[p](https://w.test/Tea_(plant))", [("[p](https://w.test/Tea_(plant))", "Plant", "https://w.test/Tea_(plant)")]),
        ("r: https://r.test", [("https://r.test", "Root", "https://r.test")]),
        ("[a](https://h.test/tea)[b](https://r.test/)", [
            ("[a](https://h.test/tea)", "Tea", "https://h.test/tea"), ("[b](https://r.test/)", "Root", "https://r.test/")]),
        ("[made up](https://h.test/coffee) https://h.test/teas http://h.test/tea", []),
        ("no links [x] (y) h.test/tea", []),
        ("", []),
    ],
)  # fmt: skip
def test_known_pages_are_cited_where_the_text_links_or_names_them(
    text: str, expected: list[tuple[str, str, str]]
) -> None:
    assert cited(text) == expected


def test_number_of_citations_is_bounded() -> None:
    assert len(citations("https://h.test/tea " * (MAX_CITATIONS + 5), [TEA])) == MAX_CITATIONS


@given(
    st.lists(
        st.sampled_from(["[", "]", "(", ")", "https://h.test/tea", "x", " ", "<", ">", ".", "\n"]), max_size=30
    ).map("".join)
)
def test_citations_are_in_order_apart_and_name_their_url(text: str) -> None:
    place = 0
    for entry in citations(text, [TEA]):
        assert place <= entry["start_index"] < entry["end_index"] <= len(text)
        assert entry["url"] in text[entry["start_index"] : entry["end_index"]]
        place = entry["end_index"]


def test_annotations_of_openai_are_found_in_its_own_texts() -> None:
    """Its texts cite with links in brackets; which pages were shown is taken from the annotations."""
    parts = [
        part
        for answer in all_recorded(stream=False, openai=True)
        if answer.name.startswith("web_search/") and answer.body is not None
        for item in answer.body["output"]
        if item["type"] == "message"
        for part in item["content"]
        if part["annotations"]
    ]
    assert len(parts) == 3
    for part in parts:
        sources = [Source(entry["url"], entry["title"]) for entry in part["annotations"]]
        assert citations(part["text"], sources) == part["annotations"]


TEXT = "Hot (see https://h.test/tea)."
ANNOTATION: Json = {
    "type": "url_citation",
    "end_index": 27,
    "start_index": 9,
    "title": "Tea",
    "url": "https://h.test/tea",
}


def part(annotations: list[Json]) -> Json:
    return {"type": "output_text", "annotations": annotations, "logprobs": [], "text": TEXT}


def message(annotations: list[Json]) -> list[ModelEvent]:
    return [
        ItemAdded("m", {"type": "message", "role": "assistant"}),
        PartAdded("m", 0, "output_text"),
        Delta("m", 0, "text", TEXT),
        PartDone("m", 0, part(annotations)),
        ItemDone("m", {"type": "message", "status": "completed", "role": "assistant", "content": [part(annotations)]}),
    ]


def fed(citing: Citing, said: list[ModelEvent]) -> list[ModelEvent]:
    return [event for one in said for event in citing.feed(one)]


CALL = call_ended("c", {"type": "search", "query": "tea"}, [TEA], "told", failed=False)


def test_text_after_a_search_is_annotated_in_its_events_and_in_its_item() -> None:
    citing = Citing()
    assert fed(citing, CALL) == CALL
    told = message([])
    assert fed(citing, told) == [*told[:3], AnnotationAdded("m", 0, ANNOTATION), *message([ANNOTATION])[3:]]


def test_pages_of_earlier_turns_are_known() -> None:
    item = CALL[-1].item  # type: ignore[union-attr]  # the last event is the item's end
    assert AnnotationAdded("m", 0, ANNOTATION) in fed(Citing([{"type": "message"}, item]), message([]))


def test_what_needs_no_annotation_passes_as_it_is() -> None:
    own: Json = {**ANNOTATION, "title": "of the server"}
    citing = Citing([CALL[-1].item])  # type: ignore[union-attr]  # the last event is the item's end
    passing = [*message([own]), Finished("completed")]
    assert fed(citing, passing) == passing
    assert fed(Citing(), message([])) == message([])


def test_client_sees_annotations_before_the_end_of_their_text() -> None:
    citing = Citing([CALL[-1].item])  # type: ignore[union-attr]  # the last event is the item's end
    shown = sequenced(fed(citing, message([])))[2:]
    kinds = [event.data["type"].removeprefix("response.") for event in shown]
    assert kinds == [
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.annotation.added",
        "output_text.done",
        "content_part.done",
        "output_item.done",
    ]
    assert shown[3].data["annotation"] == ANNOTATION
    assert shown[-1].data["item"]["content"][0]["annotations"] == [ANNOTATION]


def test_brackets_after_a_url_are_left_out_however_many_there_are() -> None:
    """Counting them anew for each one would take seconds for a long text."""
    (entry, *others) = citations("https://h.test/tea" + ")" * 1500 + (" https://" + ")" * 2000) * 100, [TEA])
    assert (entry["end_index"], others) == (len("https://h.test/tea"), [])
