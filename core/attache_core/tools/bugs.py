"""Bugs in the code of tools, which may be of any package: their text may hold a credential, so it is never kept."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from attache_core.errors import AttacheError, internal_error

_log = logging.getLogger(__name__)


def log_bug(error: Exception) -> None:
    """Log what was raised instead of a result, and where: that suffices to find the bug."""
    place = "".join(traceback.format_tb(error.__traceback__))
    _log.error("A tool raised %s instead of returning a result.\n%s", type(error).__name__, place)


@contextmanager
def bugs_without_text() -> Iterator[None]:
    """An exception that is not an `AttacheError` is logged, and goes on as an internal error."""
    try:
        yield
    except AttacheError:
        raise
    except Exception as error:  # noqa: BLE001 - the edge to code of tools: any bug of one ends its turn only
        log_bug(error)
        raise internal_error() from None
