"""The create request of the Responses API as a chat completion request.

Knows which parameter is called what there; a parameter that has the same name in both APIs, or is the server's own
(`seed`, `top_k`, `chat_template_kwargs`), goes on as it came. Invariants: nothing is added that the client did not ask
for, but for the usage of a stream, which a response always has; what cannot be said is refused by name, never dropped.
Pure. Source: API reference, "Create chat completion" and "Create a model response".
"""

from __future__ import annotations

from typing import Final

from attache_core.json_codec import Json
from attache_core.turn.chat_completions.messages import chat_messages
from attache_core.turn.chat_completions.not_expressible import not_expressible
from attache_core.turn.chat_completions.options import ChatRequestOptions
from attache_core.turn.chat_completions.tools import chat_tools
from attache_core.types.turn import TurnRequest, input_items

LOGPROBS: Final = "message.output_text.logprobs"

_TRANSLATED: Final = frozenset(
    {"input", "instructions", "tools", "tool_choice", "parallel_tool_calls", "text", "max_output_tokens", "reasoning"}
    | {"include", "top_logprobs", "stream", "stream_options"}
)

_WITHOUT_MEANING: Final = frozenset({"store", "truncation"})
"""What the gateway did, or what is so anyway: nothing is kept, and `truncation: disabled` is what servers do."""


def chat_request(turn: TurnRequest, options: ChatRequestOptions) -> Json:
    """The body of `POST /v1/chat/completions`; `turn` is one that a stateless server may see (`model_request`).

    Raises:
        ClientError: 400 with the `param` that the Chat Completions API cannot express.
    """
    body = turn.body
    _refuse(body)
    passed = {name: value for name, value in body.items() if name not in _TRANSLATED | _WITHOUT_MEANING}
    return {
        **passed,
        "messages": chat_messages(body.get("instructions"), input_items(body), options),
        **chat_tools(body.get("tools") or (), body.get("tool_choice"), body.get("parallel_tool_calls")),
        **_text(body.get("text") or {}),
        **_reasoning(body.get("reasoning") or {}),
        **_given({options.max_tokens_field: body.get("max_output_tokens")}),
        **_logprobs(body),
        **_stream(body),
    }


def _refuse(body: Json) -> None:
    """What asks for something that no parameter of a chat request does."""
    if body.get("truncation") == "auto":
        raise not_expressible("'truncation' set to 'auto'", "truncation", "Send what the model is to see.")
    if body.get("n") not in (None, 1):
        raise not_expressible("'n' other than 1", "n", "A response has one answer.")


def _text(text: Json) -> Json:
    _refuse_others(text, "text", ("format", "verbosity"))
    return {**_response_format(text.get("format") or {"type": "text"}), **_given({"verbosity": text.get("verbosity")})}


def _response_format(given: Json) -> Json:
    match given.get("type"):
        case "text":
            return {}
        case "json_object":
            return {"response_format": {"type": "json_object"}}
        case "json_schema":
            schema = _given({name: value for name, value in given.items() if name != "type"})
            return {"response_format": {"type": "json_schema", "json_schema": schema}}
        case kind:
            raise not_expressible(f"A text format of type '{kind}'", "text.format.type")


def _reasoning(reasoning: Json) -> Json:
    _refuse_others(reasoning, "reasoning", ("effort", "summary", "generate_summary"))
    for name in ("summary", "generate_summary"):
        if reasoning.get(name) not in (None, "auto", "detailed"):
            message = "The model's whole reasoning is shown: leave it out, or set it to 'auto' or 'detailed'."
            raise not_expressible("A short summary of the reasoning", f"reasoning.{name}", message)
    return _given({"reasoning_effort": reasoning.get("effort")})


def _refuse_others(given: Json, parent: str, known: tuple[str, ...]) -> None:
    for name, value in given.items():
        if name not in known and value is not None:
            raise not_expressible(f"'{parent}.{name}'", f"{parent}.{name}")


def _logprobs(body: Json) -> Json:
    alternatives = body.get("top_logprobs")
    if not alternatives and LOGPROBS not in (body.get("include") or ()):
        return {}
    return {"logprobs": True, **_given({"top_logprobs": alternatives})}


def _stream(body: Json) -> Json:
    if body.get("stream") is not True:
        return _given({"stream": body.get("stream")})
    return {"stream": True, "stream_options": {**(body.get("stream_options") or {}), "include_usage": True}}


def _given(fields: Json) -> Json:
    """Without what is null: that is the same as absent, and not every server knows it."""
    return {name: value for name, value in fields.items() if value is not None}
