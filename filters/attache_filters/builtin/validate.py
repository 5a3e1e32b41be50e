"""`validate`: the request is what the Responses API defines, or is refused before anything happens."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Literal

import structlog
from pydantic import Field

from attache_core.events.event import Event
from attache_core.turn.below import Below
from attache_core.types.request import MAX_INPUT_ITEMS, validate_create
from attache_core.types.tools import runnable
from attache_core.types.turn import TurnRequest
from attache_filters.sdk.filter import FilterConfig, TurnFilter

OMITTED_TOOLS = "attache-omitted-tools"
"""Response header: the types of the tools that were left out, separated by commas."""

_log = structlog.get_logger(__name__)


class ValidateConfig(FilterConfig):
    unsupported_tools: Literal["refuse", "omit"] = "refuse"
    """What becomes of tools that OpenAI hosts and nothing here runs, such as `web_search`: `refuse` answers 400; `omit`
    leaves them out, and says so in the log and in the response header `attache-omitted-tools`."""

    max_input_items: int = Field(default=MAX_INPUT_ITEMS, ge=1, le=1_000_000)
    """Items that the `input` of one request may hold; one with more is answered 400."""


class Validate(TurnFilter[ValidateConfig]):
    """Checks the shape of a request and what its fields mean together; answers 400 with `param` and `code`."""

    config_type = ValidateConfig

    def __call__(self, turn: TurnRequest, below: Below) -> AsyncIterator[Event]:
        omit = self.config.unsupported_tools == "omit"
        validate_create(turn.body, max_input_items=self.config.max_input_items, omit_hosted_tools=omit)
        return below(_without_hosted_tools(turn))


def _without_hosted_tools(turn: TurnRequest) -> TurnRequest:
    tools, omitted = runnable(turn.body.get("tools"))
    if not omitted:
        return turn
    _log.warning("tools left out", types=omitted)
    turn = turn.with_response_header(OMITTED_TOOLS, ", ".join(omitted))
    return turn.with_body(tools=tools) if tools else turn.without("tools", "tool_choice")
