"""A chat server's refusal in the words of the request that the client sent: it knows no `messages`.

What an HTTP error means is the dialects' to say; here only its `param` is led back. Where an element of `messages` or
`tools` came from is not known any more, so the whole `input`, or `tools`, is named.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from attache_core.errors import AttacheError
from attache_core.events.dialects import dialect_for

_PARAMETERS: Final = {
    "max_tokens": "max_output_tokens",
    "max_completion_tokens": "max_output_tokens",
    "response_format.json_schema": "text.format",
    "response_format": "text.format",
    "reasoning_effort": "reasoning.effort",
    "verbosity": "text.verbosity",
    "logprobs": "top_logprobs",
}
"""Parameters of the Chat Completions API, and where the Responses API has them."""


def response_error(status: int, headers: Mapping[str, str], body: bytes) -> AttacheError:
    """See `Dialect.error`; the error's `param` is one of the Responses API."""
    error = dialect_for("auto").error(status, headers, body)
    error.param = error.param and response_param(error.param)
    return error


def response_param(param: str) -> str:
    """A path in a chat request as the path in the create request that it came from; any other path as it is."""
    if re.match(r"messages\b", param):
        return "input"
    if re.match(r"tools\b", param):
        return "tools"
    for name, ours in _PARAMETERS.items():
        if re.match(rf"{re.escape(name)}(?![\w])", param):
            return ours + param[len(name) :]
    return param
