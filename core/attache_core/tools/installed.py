"""Tool types of other packages, over the entry-point group `attache.tools`.

Each entry point leads to a subclass of `ToolType`, made once for each worker process with its settings. An installed
type may take the place of one that OpenAI hosts, such as `file_search`, but not of one that runs here already.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.metadata import EntryPoint, entry_points

from attache_core.errors import ConfigError
from attache_core.tools.builtin import BUILTIN_TYPES
from attache_core.tools.tool_type import ToolType
from attache_core.tools.tool_types import extensions
from attache_core.types.extensions import Extensions

ENTRY_POINT_GROUP = "attache.tools"

ToolTypeClass = type[ToolType]


def load_tool_types(found: Iterable[EntryPoint] | None = None) -> Mapping[str, ToolTypeClass]:
    """Every installed tool type by the name of its entry point; `found` instead of what is installed.

    Raises:
        ConfigError: an entry point does not lead to a tool type, or two types read the same declarations.
    """
    loaded: dict[str, ToolTypeClass] = {}
    entries: dict[str, EntryPoint] = {}
    for entry in sorted(entry_points(group=ENTRY_POINT_GROUP) if found is None else found):
        earlier = entries.setdefault(entry.name, entry)
        if earlier.value != entry.value:
            raise ConfigError(f"Two tool types are named {entry.name!r}: {earlier.value} and {entry.value}.")
        loaded[entry.name] = _load(entry)
    _require_different_declarations(loaded)
    return loaded


def installed_extensions(classes: Iterable[ToolTypeClass]) -> Extensions:
    """What these types add to what a request may say."""
    known = list(classes)
    return extensions((each.shapes for each in known), (each.tellers for each in known))


def known_extensions(lent: Iterable[ToolType]) -> Extensions:
    """What the tool types of the gateway file and those that are installed add to what a request may say."""
    return installed_extensions((*map(type, lent), *load_tool_types().values()))


def _load(entry: EntryPoint) -> ToolTypeClass:
    try:
        loaded = entry.load()
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"Tool type {entry.name!r} ({entry.value}) cannot be loaded: {error}.") from error
    if not (isinstance(loaded, type) and issubclass(loaded, ToolType)):
        raise ConfigError(f"Tool type {entry.name!r} ({entry.value}) is not a ToolType class.")
    return loaded


def _require_different_declarations(loaded: Mapping[str, ToolTypeClass]) -> None:
    owners = {declaration: "the gateway itself" for each in BUILTIN_TYPES for declaration in each.shapes}
    for name, each in loaded.items():
        for declaration in each.shapes:
            if declaration in owners:
                raise ConfigError(
                    f"Tool type {name!r} reads {declaration!r} declarations, as {owners[declaration]} does."
                )
            owners[declaration] = repr(name)
