"""The kept result speaks of every event type of the API, and of the packages that are installed."""

from __future__ import annotations

from collections import Counter
from importlib.metadata import version

from conformance.never_sent import NEVER_SENT
from conformance.result import PAGE, rendered, unexplained
from conformance.schemas import EVENT_MODELS

ALL_SENT = Counter({f"event {kind}": 1 for kind in EVENT_MODELS.keys() - NEVER_SENT.keys()})


def test_run_that_saw_all_that_is_ever_sent_leaves_nothing_unexplained() -> None:
    assert unexplained(ALL_SENT) == []


def test_event_type_that_was_not_seen_or_should_not_have_been_is_named() -> None:
    seen = ALL_SENT.copy()
    del seen["event response.completed"]
    seen["event response.queued"] = 1

    assert unexplained(seen) == [
        "response.completed was not seen, and nothing says why",
        "response.queued was seen, and is said never to be sent",
    ]


def test_page_counts_objects_events_and_items() -> None:
    page = rendered(Counter({"object response": 2, "event response.created": 1_000, "item message": 3}))

    assert "1,002 objects and events passed" in page
    for row in ("| `response` | 2 |", "| `response.created` | 1,000 |", "| `message` | 3 |"):
        assert row in page


def test_kept_page_names_each_event_type_and_the_version_of_the_package() -> None:
    page = PAGE.read_text()

    assert [kind for kind in EVENT_MODELS if f"| `{kind}` |" not in page] == []
    assert f"openai {version('openai')}" in page
