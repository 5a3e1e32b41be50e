"""What may become of a turn, whatever it was made of: a valid answer, or an error that a client may be shown."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator

from attache_core.errors import AttacheError, error_body, internal_error
from attache_core.events.error_codes import REQUEST_CODES
from attache_core.events.event import TERMINAL_TYPES, Event
from attache_core.json_codec import Json, decode, encode
from core.events.canonical_stream import check_stream

END_S = 5.0
"""Nothing takes longer; what does hangs."""

BUG = internal_error().code

TELLTALE = re.compile(
    r"Traceback|object at 0x|<class |\bError\(|\b[A-Z][A-Za-z]+(?:Error|Exception)\b|pydantic|orjson|\bNoneType\b"
    r"|\bdict\b|\bNone\b|\bTrue\b|\bFalse\b|line \d+ column \d+|has no attribute|not subscriptable|unhashable"
)
"""The words of an exception, or of Python: no message for a client has them."""


async def collect(events: AsyncIterator[Event]) -> list[Event] | AttacheError:
    """All events, or the error that was raised before the first one. Anything else that is raised is a failure."""
    collected: list[Event] = []
    async with asyncio.timeout(END_S):
        try:
            async for event in events:
                collected.append(event)  # noqa: PERF401 - what came before an error is looked at too
        except AttacheError as error:
            assert not collected, "an error after the first event is an event"
            return error
    return collected


def check_outcome(outcome: list[Event] | AttacheError, *, stream: bool, openai_types: bool = False) -> None:
    """Fails unless the outcome is one that the API knows.

    `openai_types` checks each event against the `openai` package: only for a model that says what the package knows.
    """
    if isinstance(outcome, AttacheError):
        check_error(outcome)
        return
    assert [decode(encode(event.data)) for event in outcome] == [event.data for event in outcome]
    if stream:
        check_stream(outcome, joins="anyhow", openai_types=openai_types)
    else:
        assert [event.type in TERMINAL_TYPES for event in outcome] == [True]
    failure = outcome[-1].data["response"]["error"]
    if failure is not None:
        assert failure["code"] != BUG
        check_words(failure["message"])


def check_blame(outcome: list[Event] | AttacheError) -> None:
    """Fails when an error blames the client for an answer that does not say so in words of the API."""
    if isinstance(outcome, AttacheError) and outcome.http_status not in (502, 504):
        assert outcome.code in REQUEST_CODES | {"rate_limit_exceeded"}, (outcome.http_status, outcome.code)


def check_error(error: AttacheError) -> None:
    """Fails unless a client may be shown this error."""
    assert 400 <= error.http_status <= 599
    assert error.code != BUG
    check_error_body(error_body(error))


def check_error_body(body: Json) -> None:
    """Fails unless this is the API's error object, with a message of ours."""
    assert list(body) == ["error"]
    error = body["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert isinstance(error["type"], str)
    assert error["code"] is None or isinstance(error["code"], str)
    assert error["param"] is None or isinstance(error["param"], str)
    check_words(error["message"])
    assert decode(encode(body)) == body


def check_words(message: object) -> None:
    """Fails when a message is not a sentence for a client."""
    assert isinstance(message, str)
    assert message
    found = TELLTALE.search(message)
    assert found is None, (found, message)
