"""What is wrong with a gateway file: a place, and what would be right there.

Knows pydantic's errors and turns them into sentences; is unaware of the gateway file's keys. Several problems become
one `ConfigError`, one line each, in the order of the file.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from pydantic import ValidationError
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError

from attache_core.errors import ConfigError

Path = tuple[str | int, ...]
"""Where a value stands: keys and list indexes, outermost first."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that must change.

    Attributes:
        path: the value that it is about.
        message: a sentence that says what would be right.
        line: where it is, when that is not the line of `path`.
    """

    path: Path
    message: str
    line: int | None = None


def problems_error(source: str, lines: Mapping[Path, int], problems: Iterable[Problem]) -> ConfigError:
    """One error for all problems: `source:line: path: message`, a line each; without lines, `source: path: message`."""
    located = [(problem.line or _line(lines, problem.path), problem) for problem in problems]
    located.sort(key=lambda pair: pair[0] or 0)
    return ConfigError("\n".join(_sentence(source, line, problem) for line, problem in located))


def format_path(path: Path) -> str:
    """`("chains", "responses", 3, "filter")` as `chains.responses[3].filter`."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")


def suggestion(name: str, known: Collection[str], kind: str) -> str:
    """`Did you mean x? Known {kind}: a, b, x.`, as far as there is anything to say."""
    close = get_close_matches(name, known, n=1, cutoff=0.6)
    meant = f" Did you mean {close[0]}?" if close else ""
    listed = f" Known {kind}: {', '.join(sorted(known))}." if known else f" There are no {kind}."
    return meant + listed


def custom_error(message: str, path: Path = (), value: object = None) -> InitErrorDetails:
    """A line of a pydantic error whose whole text is `message`."""
    return InitErrorDetails(type=PydanticCustomError("gateway", "{text}", {"text": message}), loc=path, input=value)


def reject(title: str, lines: list[InitErrorDetails]) -> None:
    """Raise a pydantic error of these lines, if there are any."""
    if lines:
        raise ValidationError.from_exception_data(title, lines)


def in_our_words(error: ValidationError, known_keys: Collection[str]) -> ValidationError:
    """The same error in the words of this module; an unknown key at its root is told which keys there are."""
    lines = [custom_error(_message(line, known_keys), line["loc"], line["input"]) for line in error.errors()]
    return ValidationError.from_exception_data(error.title, lines)


def problems_of(error: ValidationError) -> list[Problem]:
    """The lines of a pydantic error, without pydantic's marks (`<tag>` of a union, `[key]`) in their paths."""
    return [Problem(_without_tags(line["loc"]), _message(line, ())) for line in error.errors()]


def _message(line: ErrorDetails, known_keys: Collection[str]) -> str:
    kind = line["type"]
    if kind == "extra_forbidden":
        if len(line["loc"]) != 1:
            return "unknown key."
        return f"unknown key.{suggestion(str(line['loc'][0]), known_keys, 'keys')}"
    if kind == "missing":
        return "this key is required."
    if kind in ("gateway", "value_error"):
        return line["msg"].removeprefix("Value error, ")
    return f"{line['msg'][0].lower()}{line['msg'][1:]}, not {_shown(line['input'])}."


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


def _without_tags(path: Path) -> Path:
    return tuple(part for part in path if not (isinstance(part, str) and re.fullmatch(r"<\w+>|\[key\]", part)))


def _line(lines: Mapping[Path, int], path: Path) -> int | None:
    for length in range(len(path), -1, -1):
        if path[:length] in lines:
            return lines[path[:length]]
    return None


def _sentence(source: str, line: int | None, problem: Problem) -> str:
    parts = (source if line is None else f"{source}:{line}", format_path(problem.path), problem.message)
    return ": ".join(part for part in parts if part)
