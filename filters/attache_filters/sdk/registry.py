"""Filter names to filter classes, over the entry-point group `attache.filters`. Built-ins come in by the same door."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from attache_core.errors import ConfigError
from attache_filters.sdk.filter import Filter, HttpFilter, InferenceFilter, TurnFilter

ENTRY_POINT_GROUP = "attache.filters"

FilterClass = type[Filter[Any]]


def load_filters() -> Mapping[str, FilterClass]:
    """Every installed filter by name.

    Raises:
        ConfigError: two packages use one name, or an entry point does not lead to a filter class.
    """
    found: dict[str, EntryPoint] = {}
    for entry in sorted(entry_points(group=ENTRY_POINT_GROUP)):
        earlier = found.get(entry.name)
        if earlier is not None and earlier.value != entry.value:
            raise ConfigError(f"Two filters are named {entry.name!r}: {earlier.value} and {entry.value}.")
        found[entry.name] = entry
    return {name: _load(entry) for name, entry in found.items()}


def _load(entry: EntryPoint) -> FilterClass:
    try:
        loaded = entry.load()
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"Filter {entry.name!r} ({entry.value}) cannot be loaded: {error}.") from error
    if not (isinstance(loaded, type) and issubclass(loaded, (TurnFilter, InferenceFilter, HttpFilter))):
        raise ConfigError(
            f"Filter {entry.name!r} ({entry.value}) is not a TurnFilter, InferenceFilter or HttpFilter class."
        )
    return loaded
