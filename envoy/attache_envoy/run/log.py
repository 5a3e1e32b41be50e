"""Structured logs on standard error: JSON, one object a line, unless a person is watching a terminal.

The level is the environment variable ATTACHE_LOG (debug, info, warning, error). Libraries that log through `logging`
come out in the same form, from warning up.
"""

from __future__ import annotations

import logging
import os
import sys

import structlog

from attache_core import json_codec
from attache_core.errors import ConfigError

LEVEL_SETTING = "ATTACHE_LOG"
LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


def configure_logs(default_level: str = "info") -> None:
    """Set up logging for this process; to be called once, by its main.

    Args:
        default_level: the level when ATTACHE_LOG is not set.

    Raises:
        ConfigError: ATTACHE_LOG is not a level.
    """
    level = LEVELS.get(os.environ.get(LEVEL_SETTING, default_level).lower())
    if level is None:
        raise ConfigError(f"{LEVEL_SETTING} must be one of {', '.join(LEVELS)}.")
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    rendered = _rendering()
    structlog.configure(
        processors=[*shared, *rendered],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    _route_stdlib(shared, rendered, max(level, logging.WARNING))


def _rendering() -> list[structlog.typing.Processor]:
    if sys.stderr.isatty():
        return [structlog.dev.ConsoleRenderer()]
    return [structlog.processors.format_exc_info, _as_json]


def _as_json(_logger: object, _method: str, event: structlog.typing.EventDict) -> str:
    return json_codec.encode({key: _plain(value) for key, value in event.items()}).decode()


def _plain(value: object) -> object:
    return value if isinstance(value, (str, int, float, bool, list, dict, type(None))) else str(value)


def _route_stdlib(
    shared: list[structlog.typing.Processor], rendered: list[structlog.typing.Processor], level: int
) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *rendered],
        )
    )
    logging.basicConfig(handlers=[handler], level=level, force=True)
