"""The error of a request for something that the Chat Completions API has no way to ask for."""

from __future__ import annotations

from typing import Final

from attache_core.errors import ClientError

USE_TOOL_DISPATCH: Final = "A chain with 'tool_dispatch' serves tools that are no functions, and their calls."
"""The advice where only a function, or a call of one, can be sent: the tool loop makes functions of the others."""


def not_expressible(what: str, param: str, advice: str = "") -> ClientError:
    """400: `what` (a noun phrase, capitalised) has no counterpart; `advice` is a sentence that says what has.

    Of something in the input, `param` is `input` and no more: what is sent is the whole conversation, in which an item
    may have another place than the client gave it.
    """
    message = f"{what} cannot be sent to this model: its server speaks the Chat Completions API. {advice}"
    return ClientError(message.rstrip(), param=param, code="unsupported_value")
