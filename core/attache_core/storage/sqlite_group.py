"""Changes that wait at the same moment, in one transaction: the disk is waited for once, not once for each of them.

Unaware of threads and of what is changed. Invariants: a change is reported as made only after it was committed; one
that fails takes none of the others with it: its group is undone, those before it are made anew, and it and those behind
it come again; so however many there are of it, the others share their commits. Where the commit fails, each has one of
its own. A change that nobody waits for any more when its turn comes is not made.
Source: https://www.sqlite.org/pragma.html#pragma_synchronous.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Sequence
from typing import Final

from attache_core.storage.sqlite_thread import Call, Failed

GROUP_MS: Final = 50
"""A group that has run for so long takes no further change: those in it wait for each other."""

_BEGIN: Final = {
    True: "PRAGMA synchronous=FULL; BEGIN IMMEDIATE",
    False: "PRAGMA synchronous=NORMAL; BEGIN IMMEDIATE",
}
"""By whether the commit is to be on the disk when it returns, or with the next one that is. The file is whole either
way."""

_NOT_MADE: Final = Failed(asyncio.CancelledError())


class _MemberError(Exception):
    """One change of a group failed.

    Attributes:
        place: which of them; before it the others had been made.
    """

    def __init__(self, place: int, error: Exception) -> None:
        super().__init__(place)
        self.place = place
        self.failed = Failed(error)


class _CommitError(Exception):
    """A group could not be committed."""


def make_changes(connection: sqlite3.Connection, calls: Sequence[Call]) -> list[object]:
    """The results of the first of these calls, or why each failed; of at least one. No transaction is open.

    Raises:
        sqlite3.Error: no change was made, because the transaction could not begin.
    """
    try:
        return _together(connection, calls)
    except _MemberError as error:
        if error.place == 0:
            return [error.failed]
        # Those before it; it is the first of the next group then, and nobody needs to be made alone for its sake.
        return make_changes(connection, calls[: error.place])
    except _CommitError as error:
        if len(calls) == 1:
            return [Failed(error.__cause__ or error)]
    return _one_by_one(connection, calls)


def _together(connection: sqlite3.Connection, calls: Sequence[Call]) -> list[object]:
    begin(connection, durable=any(call.durable for call in calls))
    until = time.monotonic() + GROUP_MS / 1000
    results: list[object] = []
    try:
        for call in calls:
            results.append(_NOT_MADE if call.is_given_up else call.do(connection))
            if time.monotonic() > until:
                break
    except Exception as error:
        _undo(connection)
        raise _MemberError(len(results), error) from error
    try:
        connection.execute("COMMIT")
    except Exception as error:
        _undo(connection)
        raise _CommitError from error
    return results


def _one_by_one(connection: sqlite3.Connection, calls: Sequence[Call]) -> list[object]:
    """For each is told of its own commit."""
    results: list[object] = []
    for call in calls:
        try:
            results += make_changes(connection, [call])
        except sqlite3.Error as error:
            return results + [Failed(error)] * (len(calls) - len(results))
    return results


def begin(connection: sqlite3.Connection, *, durable: bool) -> None:
    """Begin a transaction that may write; waits for whoever writes in another process."""
    connection.executescript(_BEGIN[durable])


def _undo(connection: sqlite3.Connection) -> None:
    """Some errors, such as a full disk, have ended the transaction already."""
    if connection.in_transaction:
        connection.execute("ROLLBACK")
