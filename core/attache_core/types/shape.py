"""The building blocks of request shapes: strict models that check and are then thrown away.

Knows how a shape is declared; is unaware of any field of the API. Invariants: checking never alters the value and
nothing is built from a model, so what is not modelled cannot be lost; where alternatives exist, only the one that the
value itself names is checked, so its error is the one reported; an array is looked at up to its first fault, so that
many faults cost no more than one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, FailFast, PlainValidator, StringConstraints, TypeAdapter, ValidationError

from attache_core.types.violation import client_error, enumerated, missing, quoted, refused, wrong_type, wrong_value

MAX_ID_CHARS = 64
"""How long an id of ours, an item's `id` and a `call_id` may be."""

MAX_NAME_CHARS = 64
"""How long the name of a tool and the label of an MCP server may be."""

RequiredText = Annotated[str, StringConstraints(min_length=1)]

Id = Annotated[str, StringConstraints(max_length=MAX_ID_CHARS)]
RequiredId = Annotated[str, StringConstraints(min_length=1, max_length=MAX_ID_CHARS)]
"""The id of an item, whoever gave it: its grammar is not ours to say."""

Name = Annotated[str, StringConstraints(min_length=1, max_length=MAX_NAME_CHARS, pattern="^[a-zA-Z0-9_-]+$")]

_ID = re.compile(r"[A-Za-z0-9_-]+")

Check = Callable[[Any], Any]
"""Looks at a value; raises what `violation` offers, or pydantic's ValidationError."""


class Shape(BaseModel):
    """Base of all shapes. Values are taken as they are; fields that are not declared are not looked at."""

    model_config = ConfigDict(strict=True, extra="ignore")


def check(shape: type[Shape], value: object, *, context: object = None) -> None:
    """Raises ClientError (400) when `value` has not that shape. `context` is for the checks that ask for it."""
    try:
        shape.model_validate(value, context=context)
    except ValidationError as error:
        raise client_error(error) from None  # pydantic's error shows the value, which may be a secret


def text(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    """A check of strings."""
    if not isinstance(value, str):
        raise wrong_type("a string", value)
    return value


def json_object(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    """A check of objects."""
    if not isinstance(value, dict):
        raise wrong_type("an object", value)
    return value


def id_of(prefix: str) -> Check:
    """A check of the ids that the gateway itself gives to things of one kind."""

    def inspect(value: Any) -> Any:  # noqa: ANN401 - any JSON value
        if not text(value).startswith(prefix):
            expected = f"Expected an ID that begins with '{prefix}'."
        elif not _ID.fullmatch(value):
            expected = "Expected an ID of letters, digits, underscores and dashes only."
        elif len(value) > MAX_ID_CHARS:
            expected = f"Expected an ID of at most {MAX_ID_CHARS} characters."
        else:
            return value
        raise refused("invalid_value", f"Invalid '{{param}}': {quoted(value)}. {expected}")

    return inspect


def choice(*supported: str) -> Check:
    """A check of strings that are one of these."""

    def inspect(value: Any) -> Any:  # noqa: ANN401 - any JSON value
        if not isinstance(value, str):
            raise wrong_type(f"one of {enumerated(supported, 'or')}", value)
        if value not in supported:
            raise wrong_value(value, supported)
        return value

    return inspect


def one_of(*supported: str) -> PlainValidator:
    """The same for the annotation of a field."""
    return PlainValidator(choice(*supported))


def array_of(element: Check, expected: str) -> Check:
    """A check of arrays whose elements pass `element`; it stops at the first that does not."""
    elements: TypeAdapter[list[Any]] = TypeAdapter(Annotated[list[Annotated[Any, PlainValidator(element)]], FailFast()])

    def inspect(value: Any) -> Any:  # noqa: ANN401 - any JSON value
        if not isinstance(value, list):
            raise wrong_type(expected, value)
        try:
            for each in value:
                element(each)
        except (ValueError, AssertionError):
            # pydantic says where the fault is, and takes twice as long to find none.
            elements.validate_python(value)
        return value

    return inspect


def text_or_array_of(element: Check, expected: str) -> Check:
    """A check of strings and of arrays whose elements pass `element`."""
    array = array_of(element, expected)
    return lambda value: value if isinstance(value, str) else array(value)


def named_by_type(shapes: Mapping[str, type[Shape]], *, supported: Sequence[str] = ()) -> Check:
    """A check of objects by the shape that their `type` names.

    `supported` is what an error lists, the names of `shapes` unless given; a type among them without a shape passes.
    """
    names = tuple(supported) or tuple(shapes)

    def inspect(value: Any) -> Any:  # noqa: ANN401 - any JSON value
        if "type" not in json_object(value):
            raise missing("type")
        kind = value["type"]
        if not isinstance(kind, str) or kind not in names:
            raise wrong_value(kind, names, ("type",))
        shape = shapes.get(kind)
        return value if shape is None else shape.model_validate(value)

    return inspect
