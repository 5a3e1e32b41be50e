"""The section `tools`: settings of the tool types of other packages, by the names of their entry points.

Knows which types are installed, because each one's own class says what may be set, and what of it is a secret: a
dumped section hides what a type calls a secret, and is read back as it was. Unaware of what a type does.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, SerializeAsAny, ValidationError
from pydantic_core import InitErrorDetails

from attache_core.tools.installed import load_tool_types
from attache_core.tools.tool_type import ToolSettings
from attache_envoy.gateway.problems import custom_error, in_our_words, reject, suggestion


def _read(value: Any) -> Any:  # noqa: ANN401 - any input
    if not isinstance(value, dict) or not value:
        return value
    known = load_tool_types()
    settings: dict[str, ToolSettings] = {}
    problems: list[InitErrorDetails] = []
    for name, given in value.items():
        if name not in known:
            message = f"there is no tool type {name!r}.{suggestion(name, known, 'tool types')}"
            problems.append(custom_error(message, (name,)))
            continue
        kind = known[name].settings_type
        try:
            settings[name] = kind.model_validate({} if given is None else given)
        except ValidationError as error:
            lines = in_our_words(error, kind.model_fields).errors()
            problems += [custom_error(line["msg"], (name, *line["loc"])) for line in lines]
    reject("tools", problems)
    return settings


ToolSections = Annotated[dict[str, SerializeAsAny[ToolSettings]], BeforeValidator(_read)]
"""Settings by the name of the tool type; a type without an entry has its defaults."""
