"""Which module writes which dialect."""

from __future__ import annotations

from attache_core.json_codec import Json
from attache_core.testing.model_script import Dialect, Said
from attache_core.testing.model_wire.llama_cpp import LlamaCppWire
from attache_core.testing.model_wire.openai import OpenAiWire
from attache_core.testing.model_wire.sglang import SglangHarmonyWire, SglangWire
from attache_core.testing.model_wire.vllm import HarmonyWire, VllmWire
from attache_core.testing.model_wire.vllm_direct import DirectVllmWire
from attache_core.testing.model_wire.wire import Wire

_WIRES: dict[Dialect, type[Wire]] = {
    "vllm": VllmWire,
    "vllm_harmony": HarmonyWire,
    "vllm_direct": DirectVllmWire,
    "openai": OpenAiWire,
    "llama_cpp": LlamaCppWire,
    "sglang": SglangWire,
    "sglang_harmony": SglangHarmonyWire,
}


def wire_for(dialect: Dialect, request: Json, said: Said) -> Wire:
    """The writer of one answer; ValueError when this server has no way to say it."""
    return _WIRES[dialect](request, said)
