"""`validate`: the request is what the Responses API defines, or is refused before anything happens."""

from __future__ import annotations

import asyncio
from typing import Literal

import structlog
from pydantic import Field

from attache_core.types.extensions import Extensions
from attache_core.types.request import MAX_INPUT_ITEMS, validate_create
from attache_core.types.tools import runnable
from attache_core.types.turn import TurnRequest
from attache_filters.sdk.filter import FilterConfig, RequestFilter, Services

OMITTED_TOOLS = "attache-omitted-tools"
"""Response header: the types of the tools that were left out, separated by commas."""

ITEMS_AT_ONCE = 500
"""An input of more items is checked in a thread: it takes longer in all, but the other turns of the worker wait for
milliseconds at a time and not for the whole (a thousand messages of three parts: 5 instead of 54 ms)."""

_log = structlog.get_logger(__name__)


class ValidateConfig(FilterConfig):
    unsupported_tools: Literal["refuse", "omit"] = "refuse"
    """What becomes of tools that OpenAI hosts and nothing here runs, such as `code_interpreter`: `refuse` answers 400;
    `omit` leaves them out, and says so in the log and in the response header `attache-omitted-tools`."""

    max_input_items: int = Field(default=MAX_INPUT_ITEMS, ge=1, le=1_000_000)
    """Items that the `input` of one request may hold; one with more is answered 400."""


class Validate(RequestFilter[ValidateConfig]):
    """Checks the shape of a request and what its fields mean together; answers 400 with `param` and `code`."""

    config_type = ValidateConfig

    @classmethod
    def may_be_bypassed(cls, config: ValidateConfig) -> bool:
        """See `Filter.may_be_bypassed`."""
        return True

    def __init__(self, config: ValidateConfig, services: Services) -> None:
        super().__init__(config, services)
        self._extensions = services.extensions
        self._compacts = services.seal is not None

    async def request(self, turn: TurnRequest) -> TurnRequest:
        """See `RequestFilter.request`."""
        given = turn.body.get("input")
        if isinstance(given, list) and len(given) > ITEMS_AT_ONCE:
            await asyncio.to_thread(self._check, turn)
        else:
            self._check(turn)
        return _without_hosted_tools(turn, self._extensions)

    def _check(self, turn: TurnRequest) -> None:
        validate_create(
            turn.body,
            max_input_items=self.config.max_input_items,
            omit_hosted_tools=self.config.unsupported_tools == "omit",
            compacts=self._compacts,
            extensions=self._extensions,
        )


def _without_hosted_tools(turn: TurnRequest, extensions: Extensions) -> TurnRequest:
    tools, omitted = runnable(turn.body.get("tools"), extensions)
    if not omitted:
        return turn
    _log.warning("tools left out", types=omitted)
    turn = turn.with_response_header(OMITTED_TOOLS, ", ".join(omitted))
    return turn.with_body(tools=tools) if tools else turn.without("tools", "tool_choice")
