"""Where servers of the Chat Completions API, and the templates of their models, differ in what they read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

MaxTokensField = Literal["max_tokens", "max_completion_tokens"]

ReasoningField = Literal["reasoning_content", "reasoning"]
"""What servers call the reasoning of an assistant message."""

LateSystemRole = Literal["system", "user"]

DEFAULT_REASONING_FIELDS: Final[tuple[ReasoningField, ...]] = ("reasoning_content", "reasoning")


@dataclass(frozen=True, slots=True)
class ChatRequestOptions:
    """How one server is asked.

    Attributes:
        max_tokens_field: what it calls the bound on what the model may say. Every server that is known here reads
            `max_tokens`; OpenAI's reasoning models read the other one only.
        reasoning_fields: under which names the reasoning of earlier answers is sent: vLLM reads `reasoning`, SGLang,
            llama.cpp and DeepSeek `reasoning_content`, and each ignores the other. None of them leaves it out.
        late_system_role: the role of a system message that comes after somebody else's: there are templates (of
            Qwen 3.5, for one) that refuse the whole conversation where that is `system`.
    """

    max_tokens_field: MaxTokensField = "max_tokens"
    reasoning_fields: tuple[ReasoningField, ...] = DEFAULT_REASONING_FIELDS
    late_system_role: LateSystemRole = "system"
