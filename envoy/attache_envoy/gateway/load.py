"""Gateway files in: text, path or command-line options to a `Gateway`. Every failure is a `ConfigError`.

Knows the shorthand `upstream:`; is unaware of Envoy.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path as FilePath
from typing import Any

from pydantic import ValidationError

from attache_core.errors import ConfigError
from attache_core.json_codec import Json
from attache_envoy.gateway.document import Document, read_document
from attache_envoy.gateway.entries import FilterCheck
from attache_envoy.gateway.model import DEFAULT_UPSTREAM, NO_AUTHENTICATION, Gateway, Placement
from attache_envoy.gateway.problems import Path, Problem, problems_error, problems_of
from attache_filters.sdk.registry import FilterClass, load_filters

_SHORTHAND: Path = ("upstreams", DEFAULT_UPSTREAM, "url")
_SHORTEST = "The shortest gateway file is `upstream: http://127.0.0.1:8000`."
_PLACEHOLDER = {"upstreams": {DEFAULT_UPSTREAM: {"url": "http://127.0.0.1:8000"}}}
_OPTION_PATHS = frozenset({("listen",), ("placement",), ("workers",), ("storage",)})


def load_gateway(path: FilePath, *, filters: Mapping[str, FilterClass] | None = None) -> Gateway:
    """Read a gateway file. Messages name the file as `path` does.

    Raises:
        ConfigError: it cannot be read, or `parse_gateway` refuses it.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ConfigError(f"{path}: the gateway file cannot be read: {reason}.") from error
    return parse_gateway(text, str(path), filters=filters)


def parse_gateway(
    text: str,
    source: str,
    *,
    filters: Mapping[str, FilterClass] | None = None,
    environ: Mapping[str, str] | None = None,
) -> Gateway:
    """Read the text of a gateway file.

    Args:
        text: YAML; see `Gateway` for its keys and `document` for `${NAME}` in it.
        source: what messages call it.
        filters: what `filter:` may name; default, the installed ones.
        environ: what `${NAME}` may name; default, the process's environment.

    Raises:
        ConfigError: one line for each problem: `source:line: key: what would be right`.
    """
    document = read_document(text, source, os.environ if environ is None else environ)
    value, problems = _expand_shorthand(document)
    try:
        gateway = Gateway.model_validate(value, context=FilterCheck(load_filters() if filters is None else filters))
    except ValidationError as error:
        unread = {problem.path for problem in problems if problem.line is None}
        found = (_as_written(problem, document) for problem in problems_of(error))
        problems += [problem for problem in found if not _is_within(problem.path, unread)]
    if problems:
        raise problems_error(source, document.lines, problems)
    return gateway


def default_gateway(upstream_url: str, *, filters: Mapping[str, FilterClass] | None = None) -> Gateway:
    """The gateway of the file `upstream: URL`.

    Raises:
        ConfigError: the URL cannot be used.
    """
    check = FilterCheck(load_filters() if filters is None else filters)
    return _validated({"upstreams": {DEFAULT_UPSTREAM: {"url": upstream_url}}}, check)


def with_options(  # noqa: PLR0913 - one keyword for each option of the command line
    gateway: Gateway,
    *,
    upstream: str | None = None,
    listen: str | None = None,
    placement: Placement | str | None = None,
    workers: int | str | None = None,
    storage: str | None = None,
) -> Gateway:
    """The same gateway with what the command line says in place of what the file says.

    `upstream` is the URL of the gateway's default upstream; its other settings stay.

    Raises:
        ConfigError: a value cannot be used; the message names the option.
    """
    given = {"listen": listen, "placement": placement, "workers": workers}
    value = gateway.model_dump(exclude_unset=True)
    value |= {key: option for key, option in given.items() if option is not None}
    if storage is not None:
        value["storage"] = {**value.get("storage", {}), "url": storage}
    if upstream is not None:
        value["upstreams"][gateway.default_upstream]["url"] = upstream
    return _validated(value, None)


def _validated(value: Json, check: FilterCheck | None) -> Gateway:
    try:
        return Gateway.model_validate(value, context=check)
    except ValidationError as error:
        problems = [_of_option(problem) for problem in problems_of(error)]
        raise problems_error("command line", {}, problems) from None


def _of_option(problem: Problem) -> Problem:
    if problem.path[:1] == ("upstreams",):
        return Problem(("--upstream",), problem.message)
    return Problem((f"--{problem.path[0]}",), problem.message) if problem.path[:1] in _OPTION_PATHS else problem


def _expand_shorthand(document: Document) -> tuple[Any, list[Problem]]:
    value, problems = document.value, list(document.problems)
    if not isinstance(value, dict):
        what = "the file is empty" if value is None else "the file is not a mapping of keys to values"
        return _PLACEHOLDER, [*problems, Problem((), f"{what}. {_SHORTEST}")]
    rest = {key: item for key, item in value.items() if key != "upstream"}
    if "shell" in value and value["shell"] is None:
        problems.append(Problem(("shell",), "write `shell: {}` to grant a shell as it is by default, or no `shell:`."))
    if "authentication" in value and value["authentication"] is None:
        problems.append(Problem(("authentication",), NO_AUTHENTICATION))
    if "upstream" in value and "upstreams" in value:
        problems.append(Problem(("upstream",), "give either `upstream` or `upstreams`, not both."))
    elif "upstream" in value:
        rest["upstreams"] = {DEFAULT_UPSTREAM: {"url": value["upstream"]}}
    elif "upstreams" not in value:
        problems.append(Problem((), f"it names no inference server. {_SHORTEST}"))
        rest |= _PLACEHOLDER
    return rest, problems


def _is_within(path: Path, unread: set[Path]) -> bool:
    """Whether a value could not be read, or is in one that could not."""
    return path in unread or any(path[:length] in unread for length in range(1, len(path)))


def _as_written(problem: Problem, document: Document) -> Problem:
    """The problem at its place in the file: an expanded shorthand is called by its own key."""
    expanded = problem.path == _SHORTHAND and ("upstream",) in document.lines
    return Problem(("upstream",), problem.message) if expanded else problem
