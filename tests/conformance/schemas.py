"""JSON schemas (Draft 2020-12) of what the Responses API answers, made from the types of the `openai` package.

The package reads leniently: nullable fields may be absent, unknown ones may be present. These schemas do not: every
field is demanded (null where the type allows it) and no other is allowed, save for the tables in `exceptions.py`.
Where a value may be one of several objects, the keyword `objectOf` names the candidates by their `type`, so that a
violation is told of the object that was meant. Unaware of who answered.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, Literal, get_args

import jsonschema
from openai.types.responses import (
    CompactedResponse,
    Response,
    ResponseInputMessageItem,
    ResponseOutputItem,
    ResponseStreamEvent,
)
from openai.types.responses.response_item_list import ResponseItemList
from openai.types.shared.error_object import ErrorObject
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from attache_core.json_codec import Json
from conformance.exceptions import ADDED, NEVER_NULL, NEWER, OMITTED, OPTIONAL, REPLACED, UNRECORDED


class ResponseDeleted(BaseModel):
    """What the API answers when a response was deleted; the package has no type of it."""

    id: str
    object: Literal["response"]
    deleted: Literal[True]


class CompactedWindow(CompactedResponse):
    """What the API answers to a compaction; the package calls the user's messages in it output of the model."""

    output: list[ResponseInputMessageItem | ResponseOutputItem]  # type: ignore[assignment]  # a wider type, on purpose


EVENT_MODELS: Final[dict[str, type[BaseModel]]] = {
    name: model
    for model in get_args(get_args(ResponseStreamEvent)[0])
    for name in get_args(model.model_fields["type"].annotation)
}
"""The package's model of each event type."""

OBJECT_MODELS: Final[dict[str, type[BaseModel]]] = {
    "response": Response,
    "response.deleted": ResponseDeleted,
    "response.compaction": CompactedWindow,
    "list": ResponseItemList,
    "error": ErrorObject,
}
"""The package's model of each JSON answer; an error's stands in the field `error` of its body."""

MAX_SHOWN_CHARS = 200
"""How much of a violation's text is shown."""

_REF = "#/$defs/"


@cache
def definitions(*, of_recordings: bool = False) -> dict[str, Json]:
    """The schema of every object, by the package's class name; `of_recordings` forgives what came to the API later."""
    models = [*OBJECT_MODELS.values(), *EVENT_MODELS.values()]
    _, schema = models_json_schema([(model, "validation") for model in models])
    loose: dict[str, Json] = schema["$defs"]
    kinds = {name: _kinds(definition) for name, definition in loose.items()}
    for name, fields in NEVER_NULL.items():
        for field in fields:
            loose[name]["properties"][field] = _without_null(loose[name]["properties"][field])
    return {name: _strict(name, _dispatched(each, kinds), of_recordings) for name, each in loose.items()}


@dataclass(frozen=True, slots=True)
class Schema:
    """A compiled schema."""

    _validator: Any

    def violations(self, value: Json) -> list[str]:
        """What is wrong with `value`; such as `output[0]: 'status' is a required property (ResponseOutputMessage)`."""
        return [_described(error) for error in self._validator.iter_errors(value)]


def compiled(models: Mapping[str, type[BaseModel]], *, of_recordings: bool = False) -> dict[str, Schema]:
    """The schemas of `EVENT_MODELS` or of `OBJECT_MODELS`, by the same keys."""
    defs = definitions(of_recordings=of_recordings)
    return {kind: Schema(_Validator({"$ref": _REF + model.__name__, "$defs": defs})) for kind, model in models.items()}


def _described(error: Any) -> str:
    path = error.json_path.removeprefix("$").removeprefix(".")
    schema = error.schema if isinstance(error.schema, dict) else {}
    return f"{path or 'the whole'}: {error.message[:MAX_SHOWN_CHARS]} ({schema.get('title')})"


def _strict(name: str, definition: Json, of_recordings: bool) -> Json:
    """All fields demanded and no others allowed, but for the tables."""
    if "properties" not in definition:
        return definition
    demanded = {**definition["properties"], **ADDED.get(name, {}), **REPLACED.get(name, {})}
    may_be_absent = {*OMITTED.get(name, ()), *UNRECORDED.get(name, ())}
    if of_recordings:
        may_be_absent |= set(NEWER.get(name, ()))
    return {
        **definition,
        "properties": {**demanded, **OPTIONAL.get(name, {})},
        "required": [field for field in demanded if field not in may_be_absent],
        "additionalProperties": False,
    }


def _without_null(schema: Json) -> Json:
    return {**schema, "anyOf": [option for option in schema["anyOf"] if option != {"type": "null"}]}


def _kinds(definition: Json) -> list[str]:
    """The values that `type` may have in this object; none when that does not tell it apart."""
    declared = definition.get("properties", {}).get("type", {})
    return [
        value
        for option in (declared, *declared.get("anyOf", ()))
        for value in (option.get("enum") or [option.get("const")])
        if value is not None
    ]


def _dispatched(schema: Any, kinds: Mapping[str, list[str]]) -> Any:
    """The same schema with `objectOf` in place of each `anyOf` that names objects."""
    if isinstance(schema, list):
        return [_dispatched(each, kinds) for each in schema]
    if not isinstance(schema, dict):
        return schema
    schema = {name: _dispatched(each, kinds) for name, each in schema.items()}
    options = schema.get("anyOf")
    if not isinstance(options, list) or not any("$ref" in option for option in options):
        return schema
    names = [option["$ref"].removeprefix(_REF) for option in options if "$ref" in option]
    others = [option for option in options if "$ref" not in option]
    if any(option.get("type") == "object" for option in others):
        return schema
    del schema["anyOf"]
    by_kind: dict[str, list[str]] = {}
    for name in names:
        for kind in kinds[name]:
            by_kind.setdefault(kind, []).append(name)
    told_apart = len(names) > 1 and all(kinds[name] for name in names)
    return {**schema, "objectOf": {"names": names, "kinds": by_kind if told_apart else None, "others": others}}


def _object_of(validator: Any, rule: Json, instance: Any, _schema: Json) -> Iterator[Any]:
    """Violations of the candidate that was meant: the one of this `type` with the fewest."""
    if not isinstance(instance, dict):
        yield from validator.descend(instance, {"anyOf": rule["others"] or [False]})
        return
    kind, names = instance.get("type"), rule["names"]
    if rule["kinds"] is not None:
        names = rule["kinds"].get(kind) if isinstance(kind, str) else None
    if not names:
        yield jsonschema.ValidationError(f"unknown type {kind!r}; known are {sorted(rule['kinds'])}")
        return
    attempts = (list(validator.descend(instance, {"$ref": _REF + name})) for name in names)
    yield from min(attempts, key=len)


_Validator: Final = jsonschema.validators.extend(  # type: ignore[no-untyped-call]  # its stubs do not type it
    jsonschema.Draft202012Validator, {"objectOf": _object_of}
)
