"""What a call of a function is in the Responses API: a function may stand for a tool that chat servers do not know."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class CalledTool:
    """One tool as its calls name it.

    Attributes:
        kind: the type of the item that a call of it is.
        namespace: of a tool in one.
    """

    name: str
    kind: Literal["function_call", "custom_tool_call"] = "function_call"
    namespace: str | None = None
