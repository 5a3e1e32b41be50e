"""`attache filters`: which filters are installed, and what can be set on them."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import Annotated

import typer
from pydantic.fields import FieldInfo
from rich.console import Console
from rich.table import Column, Table

from attache_core.errors import ConfigError
from attache_filters.sdk.filter import HttpFilter, InferenceFilter
from attache_filters.sdk.registry import ENTRY_POINT_GROUP, FilterClass, load_filters


def filters(name: Annotated[str | None, typer.Argument(help="Show the settings of this filter.")] = None) -> None:
    """List the installed filters, or the settings of one."""
    installed = load_filters()
    if name is None:
        Console().print(_table_of_filters(installed))
        return
    if name not in installed:
        raise ConfigError(f"There is no filter {name!r}. Installed: {', '.join(sorted(installed))}.")
    _print_settings(name, installed[name])


def _table_of_filters(installed: Mapping[str, FilterClass]) -> Table:
    packages = {entry.name: entry.dist.name if entry.dist else "" for entry in entry_points(group=ENTRY_POINT_GROUP)}
    table = Table("filter", "kind", "package", "what it does", box=None, pad_edge=False)
    for name, kind in sorted(installed.items()):
        table.add_row(name, _kind(kind), packages.get(name, ""), _summary(kind))
    return table


def _kind(filter_class: FilterClass) -> str:
    if issubclass(filter_class, HttpFilter):
        return "http"
    return "inference" if issubclass(filter_class, InferenceFilter) else "turn"


def _summary(filter_class: FilterClass) -> str:
    return inspect.cleandoc(filter_class.__doc__ or "").partition("\n\n")[0].replace("\n", " ")


def _print_settings(name: str, filter_class: FilterClass) -> None:
    console = Console()
    console.print(f"[bold]{name}[/bold] ({_kind(filter_class)} filter)")
    console.print(inspect.cleandoc(filter_class.__doc__ or ""), markup=False, highlight=False)
    fields = filter_class.config_type.model_fields
    if not fields:
        console.print("It has no settings.")
        return
    # Names and values are there to be copied: where there is no room they go on in the next line.
    table = Table(Column("setting", no_wrap=True), box=None, pad_edge=False)
    for title in ("type", "default", "meaning"):
        table.add_column(title, overflow="fold")
    for key, field in fields.items():
        table.add_row(key, _type_name(field), _default(field), (field.description or "").replace("\n", " "))
    console.print(table)


def _type_name(field: FieldInfo) -> str:
    annotation = field.annotation
    return annotation.__name__ if isinstance(annotation, type) else str(annotation).replace("typing.", "")


def _default(field: FieldInfo) -> str:
    return "required" if field.is_required() else str(field.get_default(call_default_factory=True))
