"""A guardrail: text with a blocked word in it does not reach the model.

Placed above `tool_dispatch` it sees what the client sends, once a turn. Placed inside the loop it sees every round,
and so the results of tool calls as well.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from attache_filters.sdk import Below, ClientError, Event, FilterConfig, TurnFilter, TurnRequest, input_items

__all__ = ["Guardrail", "GuardrailConfig"]


class GuardrailConfig(FilterConfig):
    blocked_words: tuple[str, ...]
    """Words that must not reach the model, in any case of letters."""


class Guardrail(TurnFilter[GuardrailConfig]):
    """Refuses a round whose input holds a blocked word."""

    config_type = GuardrailConfig

    def __call__(self, turn: TurnRequest, below: Below) -> AsyncIterator[Event]:
        text = str(input_items(turn.body)).casefold()
        for word in self.config.blocked_words:
            if word.casefold() in text:
                raise ClientError("The guardrail refused this input.", code="guardrail_blocked", param="input")
        return below(turn)
