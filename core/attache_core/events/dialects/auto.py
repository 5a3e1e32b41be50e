"""Any server of those that are known: each one's oddities are forgiven, and none of the rules gets in another's way."""

from __future__ import annotations

from attache_core.events.dialects.llama_cpp import LlamaCppDialect
from attache_core.events.dialects.openai import OpenAIDialect
from attache_core.events.dialects.sglang import SglangDialect
from attache_core.events.dialects.vllm import VllmDialect


class AutoDialect(SglangDialect, LlamaCppDialect, VllmDialect, OpenAIDialect):
    """All dialects at once. A single named one forgives what its server does, and no other's faults."""
