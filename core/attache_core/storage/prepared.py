"""Statements as a driver takes them: SQLAlchemy writes each of them once, and the text is sent again and again.

Pure; unaware of connections. Who asks for the same text again brings the same statement object, so statements are built
once, and what changes from call to call is a parameter.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from sqlalchemy import ClauseElement, Dialect, Executable
from sqlalchemy.sql.compiler import SQLCompiler

MAX_PREPARED: Final = 256
"""Statements whose text is kept, several times as many as there are."""

Parameters = Mapping[str, object]
NO_PARAMETERS: Final[Parameters] = {}


class Prepared:
    """One statement in the words of one database."""

    __slots__ = ("_compiled", "_constants", "_names", "text")

    def __init__(self, statement: ClauseElement, dialect: Dialect) -> None:
        compiled = statement.compile(dialect=dialect)
        assert isinstance(compiled, SQLCompiler)
        self._compiled = compiled
        self._constants: dict[str, Any] = dict(compiled.params)
        self._names: tuple[str, ...] = tuple(compiled.positiontup or ())
        self.text: str = compiled.string

    def bound(self, parameters: Parameters) -> tuple[str, tuple[object, ...]]:
        """The text and its values, in order. A missing value is null; one that follows `IN` changes the text."""
        if self._compiled.post_compile_params:
            expanded = self._compiled.construct_expanded_state({**self._constants, **parameters})
            return expanded.statement, tuple(expanded.positional_parameters)
        return self.text, self.values(parameters)

    def values(self, parameters: Parameters) -> tuple[object, ...]:
        """The values alone, none of which follows `IN`."""
        values = {**self._constants, **parameters}
        return tuple([values[name] for name in self._names])


class Statements:
    """The statements of one store, prepared when they are first used."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._prepared: dict[Executable, Prepared] = {}

    def prepared(self, statement: Executable) -> Prepared:
        """The statement, prepared; the same for the same object."""
        found = self._prepared.get(statement)
        if found is None:
            if len(self._prepared) >= MAX_PREPARED:
                self._prepared.clear()
            assert isinstance(statement, ClauseElement)
            found = self._prepared[statement] = Prepared(statement, self._dialect)
        return found
