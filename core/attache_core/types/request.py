"""The create request of `POST /v1/responses`: from bytes to JSON, and whether that is a request we can answer.

Knows what a body's parameters mean together; the shape of each is in `parameters`. Is unaware of state, tools at work
and inference servers. Invariants: the body is never changed, so parameters that are not modelled go on as they came.
Text survives as it is, NULs and lone surrogates included, and so do integers of any size; where a grammar or a length
is checked, a lone surrogate is refused. Of a key that occurs twice the last counts. Source: API reference, "Create a
model response".
"""

from __future__ import annotations

from attache_core import json_codec
from attache_core.errors import ClientError
from attache_core.json_codec import Json
from attache_core.types.compaction import check_trigger
from attache_core.types.conversation import conversation_id
from attache_core.types.extensions import NO_EXTENSIONS, Extensions
from attache_core.types.parameters import CreateRequest
from attache_core.types.shape import check
from attache_core.types.tool_choice import require_declared
from attache_core.types.tools import require_runnable, runnable

MAX_NESTING = 200
"""How many arrays and objects of a request body may stand in one another: what every encoder can write again."""

MAX_INPUT_ITEMS = 10_000
"""How many items the `input` of one request may hold, unless the setting `max_input_items` says otherwise."""


def parse_create(body: bytes) -> Json:
    """The request body as a JSON object.

    Raises:
        ClientError: 400 when it is empty, no JSON, JSON of another kind, or nested deeper than `MAX_NESTING`.
    """
    try:
        value = json_codec.decode_exactly(body)
    except ValueError as error:
        raise _not_parsed("it is not valid JSON") from error
    if not isinstance(value, dict):
        raise _not_parsed("it is JSON, but not an object")
    if body.count(b"{") + body.count(b"[") > MAX_NESTING and json_codec.is_deeper(value, MAX_NESTING):
        raise _not_parsed(f"it is nested deeper than {MAX_NESTING} levels")
    return value


def validate_create(
    body: Json,
    *,
    max_input_items: int = MAX_INPUT_ITEMS,
    omit_hosted_tools: bool = False,
    compacts: bool = False,
    extensions: Extensions = NO_EXTENSIONS,
) -> None:
    """Look at a create request; see `parse_create` for how to get it. The body is not changed.

    With `omit_hosted_tools`, a tool that OpenAI hosts and nothing here runs is no fault, unless `tool_choice` names it.
    Without `compacts`, `context_management` is refused.

    Raises:
        ClientError: 400 with `param` and `code` for the first thing that is wrong.
    """
    _refuse_parameters(body)
    if "model" in body and "input" not in body:
        raise ClientError("Missing required parameter: 'input'.", code="missing_required_parameter", param="input")
    check_item_count(body.get("input"), max_input_items)
    check(CreateRequest, body, context=extensions)
    _check_compaction(body, compacts=compacts)
    _check_history(body)
    if not omit_hosted_tools:
        require_runnable(body.get("tools"), extensions)
    tools, _ = runnable(body.get("tools"), extensions)
    require_declared(body.get("tool_choice"), tools)


def check_item_count(given: object, limit: int) -> None:
    """Raises ClientError (400) where `input` holds more items than that."""
    if isinstance(given, list) and len(given) > limit:
        bound = f"Expected an array with maximum length {limit}, but got an array with length {len(given)} instead."
        raise ClientError(f"Invalid 'input': array too long. {bound}", code="array_above_max_length", param="input")


def _check_compaction(body: Json, *, compacts: bool) -> None:
    if body.get("context_management") is not None and not compacts:
        message = "Unsupported parameter: 'context_management'. This gateway is not set up for compaction."
        raise ClientError(message, code="unsupported_parameter", param="context_management")
    check_trigger(body.get("input"))


def _check_history(body: Json) -> None:
    """Whether there is something to answer, and one history at most to answer it from."""
    previous, conversation = body.get("previous_response_id"), conversation_id(body)
    if previous and conversation:
        message = "Ensure you are only providing one of: 'previous_response_id' or 'conversation'."
        raise ClientError(f"Mutually exclusive parameters. {message}", code="mutually_exclusive_parameters")
    if not (body.get("input") or previous or conversation):
        message = "One of 'input' or 'previous_response_id' must be provided."
        raise ClientError(message, code="missing_required_parameter")


def _not_parsed(reason: str) -> ClientError:
    return ClientError(f"We could not parse the JSON body of your request: {reason}.")


_MOVED = {
    "messages": "input",
    "max_tokens": "max_output_tokens",
    "max_completion_tokens": "max_output_tokens",
    "response_format": "text.format",
    "reasoning_effort": "reasoning.effort",
    "verbosity": "text.verbosity",
    "functions": "tools",
    "function_call": "tool_choice",
}
"""Parameters of the Chat Completions API, and where the Responses API has them."""

LOOKED_AT = frozenset({*CreateRequest.model_fields, *_MOVED})
"""The parameters that the gateway knows; any other is an inference server's own, and goes on as it came."""


def _refuse_parameters(body: Json) -> None:
    for name, successor in _MOVED.items():
        if name in body:
            message = (
                f"Unsupported parameter: '{name}'. In the Responses API, this parameter has moved to '{successor}'."
            )
            raise ClientError(message, code="unsupported_parameter", param=name)
