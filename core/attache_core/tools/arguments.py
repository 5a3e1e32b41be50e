"""The arguments of a call: from the text that the model wrote to the object that a tool gets, or what is wrong with it.

The schema is the tool's owner's, who will check the rest; here it is looked at as far as it is plain and cheap: types,
required fields, further fields, fixed values, in objects and arrays, and no further than `MAX_STEPS`. Anything else in
it is passed over, so what a full validator accepts is accepted here (JSON Schema 2020-12; a property test holds it).
Patterns are not run: they may come from a stranger, and can take for ever. Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from attache_core import json_codec
from attache_core.json_codec import Json

MAX_DEPTH = 32
"""How deep a value is looked at."""

MAX_NESTING = 128
"""Arrays and objects within one another: well within what a request may hold, where clients send arguments back, and
what every encoder can write again.
"""

MAX_STEPS = 200_000
"""How many words of the schema are looked at for one call: a long list of fixed values may be that of many values."""

_HALF_A_CHARACTER = re.compile(r"\\u[dD][89a-fA-F]|[\ud800-\udfff]")
_INDIRECT = frozenset({"$ref", "$dynamicRef", "anyOf", "oneOf", "allOf", "if", "not", "patternProperties"})
"""Words that say more than is looked at; beside them `additionalProperties` has another meaning."""

_LISTS = ("type", "enum", "required")
"""Words whose lists are looked through for each value."""


def parse_arguments(text: str, schema: object = None) -> Json:
    """An object that may be sent to a tool. An empty text means no arguments.

    Raises:
        ValueError: it is no JSON, no object, or not of the schema; the message is for the model.
    """
    arguments = _object(text)
    if _HALF_A_CHARACTER.search(text):
        _refuse_lone_surrogates(arguments)
    for fault in faults(arguments, schema):
        raise ValueError(f"The arguments are not what the tool takes: {fault}.")
    return arguments


def decode_arguments(text: str) -> object:
    """The JSON value that the model wrote, whatever it is. Raises ValueError when there is none that could go on."""
    value: object = json_codec.decode_exactly(text)
    if text.count("[") + text.count("{") > MAX_NESTING and json_codec.is_deeper(value, MAX_NESTING):
        raise ValueError("nested too deeply")
    return value


def faults(value: object, schema: object) -> Iterator[str]:
    """What in `value` is certainly not of the schema, the outermost first."""
    return _Inspection().faults(value, schema, "", MAX_DEPTH)


class _Inspection:
    """One look at a value; it ends where it has taken `MAX_STEPS`."""

    def __init__(self) -> None:
        self._steps_left = MAX_STEPS

    def faults(self, value: object, schema: object, at: str, depth: int) -> Iterator[str]:
        if not isinstance(schema, dict) or "$ref" in schema or "$dynamicRef" in schema or depth == 0:
            return
        lists = [schema[word] for word in _LISTS if isinstance(schema.get(word), list)]
        self._steps_left -= len(schema) + sum(map(len, lists)) + 1
        if self._steps_left < 0:
            return
        types = schema.get("type")
        wanted = [types] if isinstance(types, str) else types
        if isinstance(wanted, list) and wanted and not any(_is_of_type(value, name) for name in wanted):
            yield f"{at or 'the object'} must be of type {' or '.join(map(str, wanted))}"
            return
        options = schema.get("enum")
        if isinstance(options, list) and _are_plain(options) and value not in options:
            yield f"{at or 'the object'} must be one of {json_codec.encode(options).decode()}"
        if isinstance(value, dict):
            yield from self._faults_of_fields(value, schema, at, depth)
        elif isinstance(value, list) and "prefixItems" not in schema:
            for index, element in enumerate(value):
                yield from self.faults(element, schema.get("items"), f"{at}[{index}]", depth - 1)

    def _faults_of_fields(self, value: Json, schema: Json, at: str, depth: int) -> Iterator[str]:
        required = schema.get("required")
        for name in required if isinstance(required, list) else ():
            if isinstance(name, str) and name not in value:
                yield f"'{_path(at, name)}' is missing"
        properties = schema.get("properties")
        known = properties if isinstance(properties, dict) else {}
        is_closed = schema.get("additionalProperties") is False and not _INDIRECT & schema.keys()
        for name, content in value.items():
            if name in known:
                yield from self.faults(content, known[name], _path(at, name), depth - 1)
            elif is_closed:
                yield f"'{_path(at, name)}' is not one of its fields"


def _path(at: str, name: str) -> str:
    return f"{at}.{name[:64]}".removeprefix(".")


def _is_of_type(value: object, name: object) -> bool:
    """A type that is not known is one that nothing is said of."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    match name:
        case "object":
            return isinstance(value, dict)
        case "array":
            return isinstance(value, list)
        case "string":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "null":
            return value is None
        case "number":
            return is_number
        case "integer":
            return is_number and (isinstance(value, int) or float(str(value)).is_integer())
        case _:
            return True


def _are_plain(options: list[object]) -> bool:
    """Whether Python's idea of equality is JSON's."""
    return all(option is None or isinstance(option, str) for option in options)


def _object(text: str) -> Json:
    if not text.strip():
        return {}
    try:
        arguments = decode_arguments(text)
    except ValueError as error:
        raise ValueError("The arguments are not valid JSON.") from error
    if not isinstance(arguments, dict):
        raise ValueError("The arguments are not a JSON object.")  # noqa: TRY004 - told to the model like the others
    return arguments


def _refuse_lone_surrogates(arguments: Json) -> None:
    """JSON text may hold them, escaped, but no request to a tool can."""
    try:
        json.dumps(arguments, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise ValueError("The arguments hold half of a surrogate pair, which is no character.") from error
