"""Content parts: what messages, reasoning and the outputs of calls are made of.

Knows the part types of the API and where each may stand; is unaware of items. Invariants: a part type that is not known
is refused by name, never dropped; fields of a part that are not modelled are not looked at.
Source: API reference, "input"; param paths and wording as OpenAI's API answers them.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Self

from pydantic import AfterValidator, PlainValidator, model_validator

from attache_core.types.shape import (
    Check,
    Shape,
    array_of,
    json_object,
    named_by_type,
    one_of,
    text_or_array_of,
)
from attache_core.types.violation import enumerated, refused, wrong_value

IMAGE_DETAILS = ("low", "high", "auto", "original")
FILE_DETAILS = ("auto", "low", "high")

_objects = array_of(json_object, "an array of objects")


def _check_image_url(url: str) -> str:
    if not url.lower().startswith(("https://", "http://", "data:")):
        raise refused("invalid_value", "Invalid '{param}': expected an http or https URL, or a data URL.")
    return url


ImageUrl = Annotated[str, AfterValidator(_check_image_url)]


class InputText(Shape):
    """Text that the model reads."""

    text: str


class _BySource(Shape):
    """A part that says by exactly one of several fields where its content is."""

    sources: ClassVar[tuple[str, ...]]

    @model_validator(mode="after")
    def _check_source(self) -> Self:
        given = sum(getattr(self, name) is not None for name in self.sources)
        if given == 0:
            expected = f"Ensure you are providing exactly one of: {enumerated(self.sources, 'or')}."
            message = f"Missing mutually exclusive parameters: '{{param}}'. {expected}"
            raise refused("missing_mutually_exclusive_parameters", message)
        if given > 1:
            expected = f"Ensure you are only providing one of: {enumerated(self.sources, 'or')}."
            raise refused("mutually_exclusive_parameters", f"Mutually exclusive parameters: '{{param}}'. {expected}")
        return self


class InputImage(_BySource):
    """An image by URL (a data URL included) or by file id; without `detail` it is `auto`."""

    sources = ("file_id", "image_url")

    image_url: ImageUrl | None = None
    file_id: str | None = None
    detail: Annotated[str, one_of(*IMAGE_DETAILS)] | None = None


class InputFile(_BySource):
    """A file by content, URL or id."""

    sources = ("file_id", "file_data", "file_url")

    file_id: str | None = None
    file_data: str | None = None
    file_url: str | None = None
    filename: str | None = None
    detail: Annotated[str, one_of(*FILE_DETAILS)] | None = None


class Screenshot(_BySource):
    """What a computer showed after a call."""

    sources = ("file_id", "image_url")

    image_url: ImageUrl | None = None
    file_id: str | None = None


class OutputText(Shape):
    """Text that a model wrote; what it is annotated with is the server's."""

    text: str
    annotations: Annotated[Any, PlainValidator(_objects)] | None = None
    logprobs: Annotated[Any, PlainValidator(_objects)] | None = None


class Refusal(Shape):
    """What a model said instead of an answer."""

    refusal: str


class EncryptedContent(Shape):
    """What an agent was told by a tool call; OpenAI encrypts it, other servers leave it readable."""

    encrypted_content: str


class ReasoningPart(Shape):
    """A part of a reasoning item's content or summary."""

    text: str


INPUT_PARTS: dict[str, type[Shape]] = {
    "input_text": InputText,
    "input_image": InputImage,
    "input_file": InputFile,
}
OUTPUT_PARTS: dict[str, type[Shape]] = {"output_text": OutputText, "refusal": Refusal}
_PART_TYPES = (*INPUT_PARTS, *OUTPUT_PARTS)


def _part_of(allowed: dict[str, type[Shape]]) -> Check:
    """A content part: the API answers a type that no message has at `.type`, one that this role has not at the part."""
    check_part = named_by_type(allowed)

    def inspect(value: Any) -> Any:  # noqa: ANN401 - any JSON value
        kind = value.get("type") if isinstance(value, dict) else None
        if isinstance(kind, str) and kind not in allowed:
            raise (
                wrong_value(kind, tuple(allowed)) if kind in _PART_TYPES else wrong_value(kind, _PART_TYPES, ("type",))
            )
        return check_part(value)

    return inspect


_CONTENT = "one of an array of objects or string"
check_input_content = text_or_array_of(_part_of(INPUT_PARTS), _CONTENT)
"""The content of a message of role user, system or developer."""

check_output_content = text_or_array_of(_part_of(OUTPUT_PARTS), _CONTENT)
"""The content of a message of role assistant."""

check_call_output = text_or_array_of(named_by_type(INPUT_PARTS), "one of a string or array of objects")
"""What a function or custom tool answered."""

check_agent_content = array_of(
    named_by_type({**INPUT_PARTS, "encrypted_content": EncryptedContent}), "an array of objects"
)
"""What one of a client's agents says to another."""

check_summary = array_of(named_by_type({"summary_text": ReasoningPart}), "an array of objects")
check_reasoning = array_of(named_by_type({"reasoning_text": ReasoningPart}), "an array of objects")
check_screenshot = named_by_type({"computer_screenshot": Screenshot})
