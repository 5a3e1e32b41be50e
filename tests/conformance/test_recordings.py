"""The judge passes what OpenAI's API answered, and each line of its tables is still shown by a recording."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from attache_core.json_codec import Json
from conformance.exceptions import ADDED, NEVER_NULL, NEWER, OMITTED, OPTIONAL, REPLACED, UNRECORDED
from conformance.judge import Judge
from conformance.schemas import EVENT_MODELS, OBJECT_MODELS, definitions
from core.events.recordings import Recorded, all_recorded, all_recorded_lists

JUDGE = Judge(of_recordings=True)
DEFINITIONS = definitions(of_recordings=True)
RECORDINGS = [answer for stream in (False, True) for answer in all_recorded(stream=stream, openai=True)]
RECORDINGS += all_recorded_lists()
Field = tuple[str, str]


@pytest.mark.parametrize("answer", RECORDINGS, ids=lambda answer: answer.name)
def test_recording_of_openai_is_what_the_judge_calls_the_api(answer: Recorded) -> None:
    if answer.body is not None:
        JUDGE.answer(answer.status, answer.body)
    for event in answer.payloads:
        JUDGE.event(event)


def test_tables_name_only_what_the_package_has() -> None:
    named = {
        (name, field) for table in (OMITTED, UNRECORDED, NEWER, REPLACED) for name in table for field in table[name]
    }

    assert {(name, field) for name, field in named if field not in DEFINITIONS[name]["properties"]} == set()
    assert {name for table in (ADDED, OPTIONAL) for name in table if name not in DEFINITIONS} == set()


def test_each_field_that_may_be_absent_is_absent_from_a_recording() -> None:
    absent = {
        (name, field)
        for name, value in recorded_objects()
        for field in DEFINITIONS[name]["properties"]
        if field not in value
    }

    assert fields_of(OMITTED) - absent == set()
    assert fields_of(NEWER) - absent == set()


def test_each_field_that_is_demanded_beyond_the_package_is_in_a_recording() -> None:
    present = {(name, field) for name, value in recorded_objects() for field in value}

    assert fields_of(ADDED) - present == set()
    assert fields_of(NEWER) - present == set()


def test_no_recording_has_null_where_the_judge_refuses_it() -> None:
    values: dict[Field, list[Any]] = {field: [] for field in fields_of(NEVER_NULL)}
    for name, value in recorded_objects():
        for field in NEVER_NULL.get(name, ()):
            values[name, field] += [value[field]] if field in value else []

    assert {field for field, seen in values.items() if not seen or None in seen} == set()


def fields_of(table: dict[str, Any]) -> set[Field]:
    return {(name, field) for name, fields in table.items() for field in fields}


def recorded_objects() -> Iterator[tuple[str, Json]]:
    """Every object of every recording of OpenAI, by the package's class name."""
    for answer in RECORDINGS:
        for event in answer.payloads:
            yield from objects_in({"$ref": f"#/$defs/{EVENT_MODELS[event['type']].__name__}"}, event)
        if answer.body is not None and answer.status >= 400:
            yield from objects_in({"$ref": "#/$defs/ErrorObject"}, answer.body["error"])
        elif answer.body is not None:
            model = OBJECT_MODELS[answer.body["object"]]
            yield from objects_in({"$ref": f"#/$defs/{model.__name__}"}, answer.body)


def objects_in(schema: Json, value: Any) -> Iterator[tuple[str, Json]]:
    """The objects in `value`, and `value` itself, that `schema` has a class for."""
    if isinstance(value, list):
        items = [option["items"] for option in (schema, *schema.get("anyOf", ())) if "items" in option]
        yield from (found for each in value for item in items for found in objects_in(item, each))
    if not isinstance(value, dict):
        return
    for name in class_names(schema, value):
        yield name, value
        for field, declared in DEFINITIONS[name].get("properties", {}).items():
            yield from objects_in(declared, value.get(field))


def class_names(schema: Json, value: Json) -> list[str]:
    if "$ref" in schema:
        return [schema["$ref"].removeprefix("#/$defs/")]
    rule = schema.get("objectOf")
    if rule is None:
        return []
    names: list[str] = rule["names"] if rule["kinds"] is None else rule["kinds"].get(value.get("type"), [])
    return names
