"""Which errors of inference servers say that the input does not fit into the model's context.

OpenAI says so by the code `context_length_exceeded`, on which clients shorten what they send; of the others, llama.cpp
has an error type for it, and vLLM and SGLang say it in prose alone. The one table of that prose is here. Invariant:
only sentences about the length of the input, alone or with the answer that was asked for. An answer that is too long
by itself (vLLM's "'max_tokens' … is too large") is mended by another parameter, and is not among them.
Source: the servers' published code, and bug reports that quote them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

CONTEXT_LENGTH_EXCEEDED: Final = "context_length_exceeded"

CONTEXT_PARAM: Final = "input"
"""The parameter to change then."""

_TYPE: Final = "exceed_context_size_error"
"""llama.cpp's."""

_N: Final = r"[\d,]+"

_PROSE: Final = (
    rf"maximum context length is {_N} tokens(?:\. However, you|, but the prompt contains)",  # vLLM, OpenAI once
    rf"prompt length {_N} exceeds the max_model_len {_N}",  # vLLM's Responses API
    rf"(?<!encoder )prompt \(length {_N}\) is longer than the maximum model length of {_N}",  # vLLM's engine
    rf"prompt \(total length {_N}\) is too long to fit into the model \(context length {_N}\)",  # the same, older
    rf"input length \(?{_N}\)? exceeds (?:the )?model's maximum context length \({_N}\)",  # vLLM behind hosts
    rf"input length \({_N} tokens\) exceeds the maximum allowed length \({_N} tokens\)",  # SGLang
    rf"the input \({_N} tokens\) is longer than the model's context length \({_N} tokens\)",  # SGLang
    rf"requested token count exceeds the model's maximum context length of {_N} tokens",  # SGLang
    rf"request (?:\({_N} tokens\) )?exceeds the available context size",  # llama.cpp, before it had the type
)
_TOO_LONG: Final = re.compile("|".join(_PROSE), re.IGNORECASE)


def is_context_overflow(error: Mapping[str, object]) -> bool:
    """Whether an error, `{message, type, …}` as a server said it, is about an input that is too long."""
    message = error.get("message")
    return error.get("type") == _TYPE or (isinstance(message, str) and _TOO_LONG.search(message) is not None)
