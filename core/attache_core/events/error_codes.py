"""The codes of errors that say what is wrong with an inference server, or with its answer; and, of the codes with which
a response fails, those that say what is wrong with the request."""

from __future__ import annotations

from typing import Final

BAD_ANSWER: Final = "bad_upstream_response"
"""It is not an answer of the Responses API."""

OVER_LIMIT: Final = "upstream_limit"
"""It is larger than this gateway is set to take."""

UNAVAILABLE: Final = "upstream_unavailable"
"""There is none: the inference server is out of reach."""

BROKE_OFF: Final = "upstream_broke_off"
"""It ended before it was complete."""

TIMEOUT: Final = "upstream_timeout"
"""It said nothing for too long."""

OVERLOADED: Final = "upstream_overloaded"
"""Too many requests wait for it."""

UPSTREAM_CODES: Final = frozenset({BAD_ANSWER, OVER_LIMIT, UNAVAILABLE, BROKE_OFF, TIMEOUT, OVERLOADED})
"""All of them: an error with such a code is this gateway's own, also where it comes back from below."""

REQUEST_CODES: Final = frozenset({"context_length_exceeded", "invalid_prompt"})
"""Codes of a failed response that are the request's fault: OpenAI answers 400 with them where it does not stream."""
