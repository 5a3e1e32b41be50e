"""The create request of `POST /v1/responses`: from bytes to JSON, and whether that is a request we can answer.

Knows the parameters of the API; is unaware of state, tools at work and inference servers. Invariants: the body is never
changed, so parameters that are not modelled here (an inference server's own, new ones of the API) go on as they came; a
parameter that the gateway would not honour is refused, not ignored. Fields are declared in the order in which OpenAI's
API reports what is wrong with them. Source: API reference, "Create a model response".
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

from pydantic import Field, PlainValidator, StringConstraints

from attache_core import json_codec
from attache_core.errors import ClientError
from attache_core.json_codec import Json
from attache_core.types.items import check_input
from attache_core.types.shape import RequiredText, Shape, array_of, check, choice, named_by_type, one_of
from attache_core.types.tool_choice import check_tool_choice, require_declared
from attache_core.types.tools import Name, check_tools
from attache_core.types.violation import refused, wrong_type

MAX_NESTING = 200
"""How many arrays and objects of a request body may stand in one another: what every encoder can write again."""

MAX_METADATA_PAIRS = 16
MAX_METADATA_KEY_CHARS = 64
MAX_METADATA_VALUE_CHARS = 512
MAX_TOP_LOGPROBS = 20
MAX_SAFETY_IDENTIFIER_CHARS = 64
"""The API's own limits."""


def parse_create(body: bytes) -> Json:
    """The request body as a JSON object.

    Raises:
        ClientError: 400 when it is empty, no JSON, JSON of another kind, or nested deeper than `MAX_NESTING`.
    """
    try:
        value = json_codec.decode(body)
    except ValueError as error:
        raise _not_parsed("it is not valid JSON") from error
    if not isinstance(value, dict):
        raise _not_parsed("it is JSON, but not an object")
    if body.count(b"{") + body.count(b"[") > MAX_NESTING and _is_deeper(value, MAX_NESTING):
        raise _not_parsed(f"it is nested deeper than {MAX_NESTING} levels")
    return value


def validate_create(body: Json) -> None:
    """Look at a create request; see `parse_create` for how to get it. The body is not changed.

    Raises:
        ClientError: 400 with `param` and `code` for the first thing that is wrong.
    """
    _refuse_parameters(body)
    if "model" in body and "input" not in body:
        raise ClientError("Missing required parameter: 'input'.", code="missing_required_parameter", param="input")
    check(CreateRequest, body)
    if not any(body.get(name) for name in ("input", "previous_response_id")):
        message = "One of 'input' or 'previous_response_id' must be provided."
        raise ClientError(message, code="missing_required_parameter")
    require_declared(body.get("tool_choice"), body.get("tools"))


def _not_parsed(reason: str) -> ClientError:
    return ClientError(f"We could not parse the JSON body of your request: {reason}.")


def _is_deeper(value: object, levels: int) -> bool:
    layer = [value]
    for _ in range(levels):
        layer = [child for node in layer for child in _children(node)]
    return any(isinstance(node, (dict, list)) for node in layer)


def _children(node: object) -> Iterable[object]:
    if isinstance(node, dict):
        return node.values()
    return node if isinstance(node, list) else ()


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


_NOT_YET = {
    "conversation": "Continue from a response by 'previous_response_id'.",
    "prompt": "Send the text as 'instructions' and 'input'.",
    "context_management": "Send what the model is to see.",
}
"""Parameters that this gateway would have to ignore, and what to do instead."""


def _refuse_parameters(body: Json) -> None:
    for name, instead in _NOT_YET.items():
        if body.get(name) is not None:
            message = f"Unsupported parameter: '{name}'. This gateway does not support it yet. {instead}"
            raise ClientError(message, code="unsupported_parameter", param=name)
    for name, successor in _MOVED.items():
        if name in body:
            message = (
                f"Unsupported parameter: '{name}'. In the Responses API, this parameter has moved to '{successor}'."
            )
            raise ClientError(message, code="unsupported_parameter", param=name)


def _check_metadata(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    if not isinstance(value, dict):
        raise wrong_type("a metadata object", value)
    if len(value) > MAX_METADATA_PAIRS:
        bound = f"Expected an object with at most {MAX_METADATA_PAIRS} properties"
        message = f"too many properties. {bound}, but got an object with {len(value)} properties instead."
        raise refused("object_above_max_properties", f"Invalid '{{param}}': {message}")
    for key, text in value.items():
        _check_length("property name", key, MAX_METADATA_KEY_CHARS, ())
        if not isinstance(text, str):
            raise wrong_type("a string", text, (key,))
        _check_length("string", text, MAX_METADATA_VALUE_CHARS, (key,))
    return value


def _check_length(what: str, text: str, limit: int, at: tuple[str, ...]) -> None:
    if len(text) > limit:
        bound = f"Expected a string with maximum length {limit}, but got a string with length {len(text)} instead."
        raise refused("string_above_max_length", f"Invalid '{{param}}': {what} too long. {bound}", at)


def _refuse_background(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    if value is True:
        message = "Background responses are not supported by this gateway yet: omit '{param}' or set it to false."
        raise refused("unsupported_value", message)
    if value is not False:
        raise wrong_type("a boolean", value)
    return value


class TextFormat(Shape):
    """`{"type": "text"}` and `{"type": "json_object"}`."""


class JsonSchemaFormat(Shape):
    """An answer that follows a JSON schema."""

    name: Name
    schema_: dict[str, Any] = Field(alias="schema")
    description: str | None = None
    strict: bool | None = None


_check_format = named_by_type({"json_object": TextFormat, "text": TextFormat, "json_schema": JsonSchemaFormat})


class Text(Shape):
    """How the text of the answer is to be."""

    format: Annotated[Any, PlainValidator(_check_format)] | None = None
    verbosity: Annotated[str, one_of("low", "medium", "high")] | None = None


class ReasoningOptions(Shape):
    """How much the model thinks, and what it shows of it."""

    effort: Annotated[str, one_of("none", "minimal", "low", "medium", "high", "xhigh", "max")] | None = None
    summary: Annotated[str, one_of("concise", "detailed", "auto")] | None = None


class StreamOptions(Shape):
    """Details of a streamed answer."""

    include_obfuscation: bool | None = None


_check_include = array_of(
    choice(
        "file_search_call.results",
        "web_search_call.results",
        "web_search_call.action.sources",
        "message.input_image.image_url",
        "computer_call_output.output.image_url",
        "code_interpreter_call.outputs",
        "reasoning.encrypted_content",
        "message.output_text.logprobs",
    ),
    "an array of strings",
)


class CreateRequest(Shape):
    """The parameters that are looked at; null is the same as absent, except for `model` and `input`."""

    model: RequiredText
    input: Annotated[Any, PlainValidator(check_input)] = None
    previous_response_id: str | None = None
    include: Annotated[Any, PlainValidator(_check_include)] | None = None
    tools: Annotated[Any, PlainValidator(check_tools)] | None = None
    tool_choice: Annotated[Any, PlainValidator(check_tool_choice)] | None = None
    metadata: Annotated[Any, PlainValidator(_check_metadata)] | None = None
    text: Text | None = None
    temperature: Annotated[float, Field(ge=0.0, le=2.0)] | None = None
    top_p: Annotated[float, Field(ge=0.0, le=1.0)] | None = None
    presence_penalty: Annotated[float, Field(ge=-2.0, le=2.0)] | None = None
    frequency_penalty: Annotated[float, Field(ge=-2.0, le=2.0)] | None = None
    parallel_tool_calls: bool | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    background: Annotated[Any, PlainValidator(_refuse_background)] | None = None
    max_output_tokens: Annotated[int, Field(ge=1)] | None = None
    max_tool_calls: Annotated[int, Field(ge=1)] | None = None
    reasoning: ReasoningOptions | None = None
    user: str | None = None
    safety_identifier: Annotated[str, StringConstraints(max_length=MAX_SAFETY_IDENTIFIER_CHARS)] | None = None
    prompt_cache_key: str | None = None
    prompt_cache_retention: Annotated[str, one_of("in_memory", "24h")] | None = None
    truncation: Annotated[str, one_of("auto", "disabled")] | None = None
    instructions: str | None = None
    store: bool | None = None
    service_tier: Annotated[str, one_of("auto", "default", "fast", "flex", "priority", "scale", "ultrafast")] | None = (
        None
    )
    top_logprobs: Annotated[int, Field(ge=0, le=MAX_TOP_LOGPROBS)] | None = None
