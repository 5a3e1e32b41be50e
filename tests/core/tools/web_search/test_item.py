from __future__ import annotations

import pytest

from attache_core.json_codec import Json, decode
from attache_core.tools.web_search.item import (
    DONE,
    NOT_DONE,
    RESULTS,
    SOURCES,
    call_begun,
    call_ended,
    num_requests,
    public_item,
    sources_of,
    told_call,
)
from attache_core.tools.web_search.results import Source
from core.events.pipeline import sequenced
from core.events.recordings import recorded

SEARCH: Json = {"type": "search", "query": "tea"}
ASKED: Json = {"action": {"type": "search", "queries": ["tea"]}}
PAGES = (Source("https://h.test/1", "One"), Source("https://h.test/2", "Two"))


def kept(action: Json = SEARCH, sources: tuple[Source, ...] = PAGES) -> Json:
    (*_, done) = call_ended("k", action, sources, "told", failed=False)
    item: Json = done.item  # type: ignore[union-attr]  # the last event is the item's end
    return {"id": "ws_1", **item}


def events(*, failed: bool) -> list[tuple[str, Json | None]]:
    said = [*call_begun("k"), *call_ended("k", SEARCH, PAGES, "told", failed=failed)]
    return [(event.data["type"], event.data.get("item")) for event in sequenced(said)[2:]]


def test_events_of_a_call_are_those_of_the_api() -> None:
    shown = events(failed=False)
    assert [kind for kind, _ in shown] == [
        "response.output_item.added",
        "response.web_search_call.in_progress",
        "response.web_search_call.searching",
        "response.web_search_call.completed",
        "response.output_item.done",
    ]
    added, done = shown[0][1], shown[-1][1]
    assert added is not None
    assert done is not None
    assert {**added, "id": ""} == {"id": "", "type": "web_search_call", "status": "in_progress"}
    public = {"id": "", "type": "web_search_call", "status": "completed", "action": SEARCH}
    assert {**public_item(done, ()), "id": ""} == public


def test_streamed_call_has_the_shape_of_openais_own() -> None:
    (answer,) = recorded("web_search/builtin-tool-web_search-stream.yaml")
    theirs = [payload for payload in answer.payloads if payload.get("output_index") == 1]
    action = theirs[-1]["item"]["action"]
    ours = [
        event.data for event in sequenced([*call_begun("k"), *call_ended("k", action, PAGES, "told", failed=False)])[2:]
    ]
    ours[-1] = {**ours[-1], "item": public_item(ours[-1]["item"], ())}
    assert [shape(payload) for payload in ours] == [shape(payload) for payload in theirs]


def shape(payload: Json) -> Json:
    """A payload without its ids and numbers."""
    named = {
        name: value for name, value in payload.items() if name not in ("sequence_number", "output_index", "item_id")
    }
    return {**named, **({"item": {**payload["item"], "id": ""}} if "item" in payload else {})}


def test_call_that_failed_has_no_event_of_completion() -> None:
    kinds = [kind.rpartition(".")[2] for kind, _ in events(failed=True)]
    item = events(failed=True)[-1][1]
    assert (kinds, item and item["status"]) == (["added", "in_progress", "searching", "done"], "failed")


@pytest.mark.parametrize(
    ("include", "fields"),
    [
        ((), {"action": SEARCH}),
        ((SOURCES,), {"action": {**SEARCH, "sources": [{"type": "url", "url": page.url} for page in PAGES]}}),
        ((RESULTS,), {"action": SEARCH, "results": [{"type": "text", "text": "told"}]}),
    ],
)
def test_client_sees_of_an_item_what_it_asked_for(include: tuple[str, ...], fields: Json) -> None:
    assert public_item(kept(), include) == {"id": "ws_1", "type": "web_search_call", "status": "completed", **fields}


def test_opened_page_shows_no_sources() -> None:
    opened = {"type": "open_page", "url": PAGES[0].url}
    item = kept(opened, PAGES[:1])
    assert (public_item(item, (SOURCES,))["action"], list(sources_of(item))) == (opened, [PAGES[0]])


def test_model_is_told_of_a_call_what_it_was_told_then() -> None:
    call, output = told_call(kept(), "call_1", "web_search")
    assert (call["call_id"], call["name"], decode(call["arguments"])) == ("call_1", "web_search", ASKED)
    assert output == {"type": "function_call_output", "call_id": "call_1", "output": "told"}


@pytest.mark.parametrize(
    "item", [{"type": "web_search_call"}, {"action": 1, "results": 2, "status": None}, {"results": [1]}]
)
def test_item_that_a_client_sends_back_without_results_is_told_as_done(item: Json) -> None:
    call, output = told_call(item, "call_1", "web_search")
    assert (decode(call["arguments"]), output["output"]) == ({"action": {}}, DONE)
    assert (list(sources_of(item)), public_item(item, ())) == ([], {k: v for k, v in item.items() if k != "results"})


def test_call_of_an_earlier_turn_is_told_with_the_pages_that_the_client_got_of_it() -> None:
    _, output = told_call(public_item(kept(), (SOURCES,)), "call_1", "web_search")
    assert output["output"].splitlines() == [DONE, "It showed these pages:", *(page.url for page in PAGES)]


@pytest.mark.parametrize("status", ["failed", "in_progress", "searching"])
def test_call_of_an_earlier_turn_that_did_not_end_well_is_told_so(status: str) -> None:
    assert told_call({**public_item(kept(), ()), "status": status}, "call_1", "web_search")[1]["output"] == NOT_DONE


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        (kept(), 1),
        (kept({"type": "search", "query": "tea", "queries": ["tea", "hot"]}), 2),
        (kept({"type": "open_page", "url": "https://h.test/"}), 0),
        ({**kept(), "status": "failed"}, 0),
        ({"type": "message", "status": "completed"}, 0),
        ({"type": "web_search_call", "status": "completed", "action": None}, 0),
    ],
)
def test_queries_of_searches_that_did_not_fail_are_counted(item: Json, expected: int) -> None:
    assert num_requests([item, item]) == 2 * expected
