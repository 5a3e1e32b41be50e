"""The parameters of a create request, each with the shape and the bounds that the API gives it.

Knows every parameter of the API; is unaware of what they mean together (`request` knows). Invariants: what is not
declared here (an inference server's own parameters, new ones of the API) is not looked at; a parameter that the gateway
would not honour is refused, not ignored. Fields are declared in the order in which OpenAI's API reports what is wrong
with them. Source: API reference, "Create a model response"; docs/parameters.md says of each what becomes of it.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, PlainValidator, StringConstraints

from attache_core.types.compaction import check_context_management
from attache_core.types.conversation import check_conversation
from attache_core.types.items import check_input
from attache_core.types.shape import Name, RequiredText, Shape, array_of, choice, id_of, named_by_type, one_of
from attache_core.types.tool_choice import check_tool_choice
from attache_core.types.tools import check_tools
from attache_core.types.violation import refused, wrong_type

MAX_METADATA_PAIRS = 16
MAX_METADATA_KEY_CHARS = 64
MAX_METADATA_VALUE_CHARS = 512
MAX_TOP_LOGPROBS = 20
MAX_SAFETY_IDENTIFIER_CHARS = 64
MAX_PROMPT_CACHE_KEY_CHARS = 64
"""The API's own limits."""


def check_metadata(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    """Look at `metadata`: an object of short texts."""
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


def _refuse(instead: str) -> PlainValidator:
    """A parameter that this gateway would have to ignore, and what to do instead; null and false ask for nothing."""

    def inspect(value: Any) -> Any:  # noqa: ANN401 - any JSON value
        if value is None or value is False:
            return value
        message = f"Unsupported parameter: '{{param}}'. This gateway does not support it yet. {instead}"
        raise refused("unsupported_parameter", message)

    return PlainValidator(inspect)


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
    generate_summary: Annotated[str, one_of("concise", "detailed", "auto")] | None = None
    context: Annotated[str, one_of("auto", "current_turn", "all_turns")] | None = None
    mode: str | None = None


class StreamOptions(Shape):
    """Details of a streamed answer."""

    include_obfuscation: bool | None = None


class ImageOptions(Shape):
    """How images are prepared for the model."""

    context_compression: Annotated[str, one_of("auto", "enabled", "disabled")] | None = None


class AccessPrograms(Shape):
    """Which of OpenAI's access programs to use."""

    cyber: Annotated[str, one_of("standard", "daybreak_blue", "daybreak_red")] | None = None


class PromptCacheOptions(Shape):
    """How the server caches prompts; what the gateway could not report of it is refused."""

    mode: Annotated[str, one_of("implicit", "explicit")] | None = None
    ttl: Annotated[str, one_of("30m", "12h")] | None = None
    prewarm: Annotated[Any, _refuse("Omit it.")] = None
    comparison_response_id: Annotated[Any, _refuse("Omit it.")] = None


check_include = array_of(
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
    prompt: Annotated[Any, _refuse("Send the text as 'instructions' and 'input'.")] = None
    context_management: Annotated[Any, PlainValidator(check_context_management)] | None = None
    background_options: Annotated[Any, _refuse("Omit it, as 'background' is not supported either.")] = None
    moderation: Annotated[Any, _refuse("Omit it, or place a filter of your own in the gateway's chain.")] = None
    previous_response_id: Annotated[Any, PlainValidator(id_of("resp"))] | None = None
    conversation: Annotated[Any, PlainValidator(check_conversation)] | None = None
    include: Annotated[Any, PlainValidator(check_include)] | None = None
    tools: Annotated[Any, PlainValidator(check_tools)] | None = None
    tool_choice: Annotated[Any, PlainValidator(check_tool_choice)] | None = None
    metadata: Annotated[Any, PlainValidator(check_metadata)] | None = None
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
    prompt_cache_key: Annotated[str, StringConstraints(max_length=MAX_PROMPT_CACHE_KEY_CHARS)] | None = None
    prompt_cache_options: PromptCacheOptions | None = None
    prompt_cache_retention: Annotated[str, one_of("in_memory", "24h")] | None = None
    image: ImageOptions | None = None
    access_programs: AccessPrograms | None = None
    truncation: Annotated[str, one_of("auto", "disabled")] | None = None
    instructions: str | None = None
    store: bool | None = None
    service_tier: Annotated[str, one_of("auto", "default", "fast", "flex", "priority", "scale", "ultrafast")] | None = (
        None
    )
    top_logprobs: Annotated[int, Field(ge=0, le=MAX_TOP_LOGPROBS)] | None = None
