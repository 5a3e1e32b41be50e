"""Public ids: a prefix that names the kind of thing, and enough randomness that two never meet.

Knows which prefix belongs to which item type (as in OpenAI's own responses); is unaware of who asks. Invariant: every
id matches `[A-Za-z0-9_-]{1,64}`, because clients replay ids to servers that refuse anything else.
"""

from __future__ import annotations

import secrets
from typing import Literal

IdPrefix = Literal[
    "resp", "conv", "msg", "rs", "fc", "fco", "ctc", "ctco", "mcp", "mcpl", "mcpr", "mcpa", "ws", "fs", "ci", "ig",
    "cu", "cuo", "sh", "sho", "lsh", "lsho", "apc", "apco", "tsc", "tso", "at", "amsg", "cmp", "cntr", "item",
]  # fmt: skip

_RANDOM_BYTES = 24

_PREFIX_OF_ITEM: dict[str, IdPrefix] = {
    "message": "msg",
    "reasoning": "rs",
    "function_call": "fc",
    "function_call_output": "fco",
    "custom_tool_call": "ctc",
    "custom_tool_call_output": "ctco",
    "mcp_call": "mcp",
    "mcp_list_tools": "mcpl",
    "mcp_approval_request": "mcpr",
    "mcp_approval_response": "mcpa",
    "web_search_call": "ws",
    "file_search_call": "fs",
    "code_interpreter_call": "ci",
    "image_generation_call": "ig",
    "computer_call": "cu",
    "computer_call_output": "cuo",
    "shell_call": "sh",
    "shell_call_output": "sho",
    "local_shell_call": "lsh",
    "local_shell_call_output": "lsho",
    "apply_patch_call": "apc",
    "apply_patch_call_output": "apco",
    "tool_search_call": "tsc",
    "tool_search_output": "tso",
    "additional_tools": "at",
    "agent_message": "amsg",
    "compaction": "cmp",
}


def new_id(prefix: IdPrefix) -> str:
    """`prefix_` and 48 random hexadecimal digits (192 bits)."""
    return f"{prefix}_{secrets.token_hex(_RANDOM_BYTES)}"


def item_prefix(item_type: str) -> IdPrefix:
    """The id prefix of an item type of the API; `item` for a type that is not known."""
    return _PREFIX_OF_ITEM.get(item_type, "item")


def item_id(item_type: str) -> str:
    """A new id for an item of that type."""
    return new_id(item_prefix(item_type))
