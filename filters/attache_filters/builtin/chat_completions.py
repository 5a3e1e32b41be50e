"""`chat_completions`: one inference round with a server that speaks only the Chat Completions API."""

from __future__ import annotations

from collections.abc import AsyncIterator

from attache_core import json_codec
from attache_core.events.chat_completions import ChatCompletionsReader
from attache_core.events.event import Event
from attache_core.turn.chat_completions import (
    DEFAULT_REASONING_FIELDS,
    ChatRequestOptions,
    LateSystemRole,
    MaxTokensField,
    ReasoningField,
    chat_request,
)
from attache_core.turn.round import run_round
from attache_core.types.turn import TurnRequest
from attache_filters.builtin.round_settings import RoundSettings
from attache_filters.sdk.filter import InferenceFilter
from attache_filters.sdk.http import HttpBelow, HttpRequest, HttpResponse


class ChatCompletionsConfig(RoundSettings):
    max_tokens_field: MaxTokensField = "max_tokens"
    """What the server calls `max_output_tokens`. Most read `max_tokens`, and some ignore the other one; OpenAI's
    reasoning models read `max_completion_tokens` only."""

    reasoning_fields: tuple[ReasoningField, ...] = DEFAULT_REASONING_FIELDS
    """Under which names the server is sent the reasoning of earlier answers: vLLM reads `reasoning`; SGLang, llama.cpp
    and DeepSeek read `reasoning_content`. An empty list leaves it out."""

    late_system_role: LateSystemRole = "system"
    """The role of a system or developer message that comes after the first user message. Templates that refuse `system`
    there, such as that of Qwen 3.5, need `user`."""


class ChatCompletions(InferenceFilter[ChatCompletionsConfig]):
    """In the place of `upstream_round`, for a server without `POST /v1/responses`: asks `POST /v1/chat/completions`
    for one round, and turns requests, answers and failures from the one API into the other."""

    config_type = ChatCompletionsConfig

    def __call__(self, turn: TurnRequest, below: HttpBelow) -> AsyncIterator[Event]:
        config = self.config
        options = ChatRequestOptions(config.max_tokens_field, config.reasoning_fields, config.late_system_role)

        async def send(turn: TurnRequest) -> HttpResponse:
            headers = {**turn.headers, "content-type": "application/json"}
            body = json_codec.encode(chat_request(turn, options))
            return await below(HttpRequest("POST", "/v1/chat/completions", headers, body))

        return run_round(turn, send, dialect=ChatCompletionsReader(), limits=config.limits)
