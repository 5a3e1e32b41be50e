"""Filters that gateway files of tests may name: the built-in names and a guard, without what they do."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping

from attache_core.events.dialects import DialectName
from attache_filters.sdk import (
    Below,
    Event,
    FilterConfig,
    HttpBelow,
    HttpFilter,
    HttpRequest,
    HttpResponse,
    InferenceFilter,
    TurnFilter,
    TurnRequest,
)
from attache_filters.sdk.registry import FilterClass


class LoopConfig(FilterConfig):
    max_rounds: int = 10


class GuardConfig(FilterConfig):
    words: tuple[str, ...] = ()


class PassingFilter(TurnFilter[FilterConfig]):
    @classmethod
    def may_be_bypassed(cls, config: FilterConfig) -> bool:
        return True

    def __call__(self, turn: TurnRequest, below: Below) -> AsyncIterator[Event]:
        return below(turn)


class LoopingFilter(TurnFilter[LoopConfig]):
    config_type = LoopConfig
    calls_below_again = True

    @classmethod
    def may_be_bypassed(cls, config: LoopConfig) -> bool:
        return True

    def __call__(self, turn: TurnRequest, below: Below) -> AsyncIterator[Event]:
        return below(turn)


class GuardFilter(TurnFilter[GuardConfig]):
    config_type = GuardConfig

    def __call__(self, turn: TurnRequest, below: Below) -> AsyncIterator[Event]:
        return below(turn)


class ChatConfig(FilterConfig):
    headers_timeout_s: float = 600
    idle_timeout_s: float = 600


class AskingConfig(ChatConfig):
    dialect: DialectName = "auto"


class AskingFilter(InferenceFilter[AskingConfig]):
    config_type = AskingConfig

    @classmethod
    def may_be_bypassed(cls, config: AskingConfig) -> bool:
        return True

    def __call__(self, turn: TurnRequest, below: HttpBelow) -> AsyncIterator[Event]:
        raise NotImplementedError


class ChatFilter(InferenceFilter[ChatConfig]):
    config_type = ChatConfig

    def __call__(self, turn: TurnRequest, below: HttpBelow) -> AsyncIterator[Event]:
        raise NotImplementedError


class TheirsFilter(InferenceFilter[FilterConfig]):
    def __call__(self, turn: TurnRequest, below: HttpBelow) -> AsyncIterator[Event]:
        raise NotImplementedError


class ResourcesFilter(HttpFilter[FilterConfig]):
    async def __call__(self, request: HttpRequest, below: HttpBelow) -> HttpResponse:
        return await below(request)


FILTERS: Mapping[str, FilterClass] = {
    "validate": PassingFilter,
    "persist": PassingFilter,
    "rehydrate": PassingFilter,
    "tool_dispatch": LoopingFilter,
    "upstream_round": AskingFilter,
    "chat_completions": ChatFilter,
    "theirs": TheirsFilter,
    "resources": ResourcesFilter,
    "guard": GuardFilter,
}
