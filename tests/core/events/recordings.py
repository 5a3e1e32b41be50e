"""Reads the recordings under `tests/cassettes` (see its README)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from attache_core import json_codec
from attache_core.json_codec import Json

CASSETTES = Path(__file__).parents[2] / "cassettes"

_OF_OPENAI = frozenset(
    {
        "errors",
        "incomplete",
        "web_search",
        "mcp",
        "tool_search",
        "code_interpreter",
        "max_tool_calls",
        "conversation_items",
    }
)
"""Folders with recordings of OpenAI's API, but for the files that say otherwise."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """One recorded answer: its bytes as a stream, or its JSON body."""

    name: str
    status: int
    stream: bytes | None
    body: Json | None
    request: Json = field(default_factory=dict)
    """The body of the request that was answered so."""

    @property
    def payloads(self) -> list[Json]:
        """The stream's payloads, read without the code under test; `[DONE]` left out."""
        lines = (self.stream or b"").split(b"\n")
        data = (line.removeprefix(b"data: ") for line in lines if line.startswith(b"data: "))
        return [json_codec.decode(text) for text in data if text != b"[DONE]"]


def recorded(path: str) -> list[Recorded]:
    """The answers of one file, such as `text/resp-single-gpt-4o-streaming.yaml`."""
    document = yaml.load((CASSETTES / path).read_bytes(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    turns: list[Any] = document.get("turns") or [document]
    return [_answer(f"{path}#{number}", turn) for number, turn in enumerate(turns)]


def all_recorded(*, stream: bool, openai: bool | None = None) -> Iterator[Recorded]:
    """Every answer that is (not) a stream; with `openai`, only those of OpenAI's API or only those of other servers.

    Those of gateways are no answer of a server, nor OpenAI's.
    """
    for answer in _all():
        is_response = answer.body is None or answer.body.get("object") in (None, "response")
        if is_response and (answer.stream is not None) == stream and openai in (None, is_openai(answer.name)):
            yield answer


def all_recorded_lists() -> Iterator[Recorded]:
    """Every list of items that OpenAI's API answered."""
    return (answer for answer in _all() if answer.body is not None and answer.body.get("object") == "list")


def _all() -> Iterator[Recorded]:
    for path in sorted([*CASSETTES.glob("*/*.yaml"), *CASSETTES.glob("*/*.json")]):
        if "-gateway-" not in path.name:
            yield from recorded(str(path.relative_to(CASSETTES)))


def is_openai(name: str) -> bool:
    """Whether OpenAI's API gave that answer."""
    folder, _, file = name.partition("/")
    if "vllm" in file:
        return False
    if folder in _OF_OPENAI:
        return True
    return (
        "gpt-4o" in file or "openai_responses" in file or "gpt-5.6" in file or file.startswith("tool-function-stream")
    )


def _answer(name: str, turn: Json) -> Recorded:
    response = turn.get("response") or {"sse": _with_line_ends(turn["sse"])}
    lines = response.get("sse")
    if "websocket" in response:
        lines = [f"data: {frame}\n\n" for frame in response["websocket"]]
    return Recorded(
        name=name,
        status=200 if "websocket" in response else response.get("status_code", 200),
        stream="".join(lines).encode() if lines is not None else None,
        body=response.get("body"),
        request=turn.get("request", {}).get("body", {}),
    )


def _with_line_ends(lines: list[str]) -> list[str]:
    """The hand-shortened files have lines without their ends, and no empty lines."""
    return [f"{line}\n\n" for line in lines]
