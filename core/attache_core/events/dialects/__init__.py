"""One reader per inference server, and one for this gateway's own events."""

from __future__ import annotations

from typing import Final, Literal

from attache_core.events.dialects.auto import AutoDialect
from attache_core.events.dialects.base import Dialect
from attache_core.events.dialects.canonical import CanonicalReader
from attache_core.events.dialects.llama_cpp import LlamaCppDialect
from attache_core.events.dialects.openai import OpenAIDialect
from attache_core.events.dialects.sglang import SglangDialect
from attache_core.events.dialects.vllm import VllmDialect

__all__ = ["AutoDialect", "Dialect", "DialectName", "CanonicalReader", "dialect_for"]

DialectName = Literal["auto", "openai", "vllm", "llama_cpp", "sglang"]

_DIALECTS: Final[dict[DialectName, type[Dialect]]] = {
    "auto": AutoDialect,
    "openai": OpenAIDialect,
    "vllm": VllmDialect,
    "llama_cpp": LlamaCppDialect,
    "sglang": SglangDialect,
}


def dialect_for(name: DialectName) -> Dialect:
    """A new reader for one upstream answer."""
    return _DIALECTS[name]()
