"""Log probabilities: the tokens of a chat choice in the shape of an `output_text` part.

Source: API reference, "logprobs" of the chat completion chunk, and "logprobs" of `response.output_text.delta`.
"""

from __future__ import annotations

from attache_core.events.chat_completions.fields import list_of, object_of
from attache_core.json_codec import Json


def content_tokens(logprobs: object) -> list[Json]:
    """The tokens of a choice's text, in order; empty where the server gives none.

    Raises:
        UpstreamError: they are not of the API's shape.
    """
    tokens = list_of(object_of(logprobs).get("content")) if logprobs is not None else []
    return [_token(object_of(token)) for token in tokens]


def _token(given: Json) -> Json:
    alternatives = [_alternative(object_of(other)) for other in list_of(given.get("top_logprobs"))]
    return {**_alternative(given), "top_logprobs": alternatives}


def _alternative(given: Json) -> Json:
    """`bytes` may be null here and not there: then they are the token's own."""
    token, logprob, data = str(given.get("token") or ""), given.get("logprob"), given.get("bytes")
    number = logprob if isinstance(logprob, (int, float)) else 0.0
    known = isinstance(data, list)
    return {
        "token": token,
        "bytes": data if known else list(token.encode(errors="surrogatepass")),
        "logprob": number,
    }
