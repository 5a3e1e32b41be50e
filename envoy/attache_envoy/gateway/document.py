"""YAML text to plain values, with the line of every key and list item.

Knows YAML and environment variables; is unaware of what a gateway file may say. Lines come from PyYAML's node marks,
so values are built here, node by node, rather than by the loader. Keys are strings and no key occurs twice.

String values may name environment variables: `${NAME}`, `${NAME:-default}` (the default also stands in for an empty
variable), and `$${NAME}` for the literal text. An unquoted value is given its YAML type after that, so
`workers: ${WORKERS:-2}` is a number.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from attache_envoy.gateway.problems import Path, Problem, problems_error

_VARIABLE = re.compile(r"\$(?P<escape>\$)?\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?P<has_default>:-(?P<default>[^}]*))?\}")
_STRING_TAG = "tag:yaml.org,2002:str"


@dataclass(frozen=True, slots=True)
class Document:
    """What a file says.

    Attributes:
        value: dicts, lists and scalars.
        lines: the line, from 1, of every key and list item by its path; the root is at `()`.
        problems: what could not be read; `value` then holds what could.
    """

    value: Any
    lines: Mapping[Path, int]
    problems: tuple[Problem, ...]


def read_document(text: str, source: str, environ: Mapping[str, str]) -> Document:
    """Read one YAML document.

    Raises:
        ConfigError: the text is not YAML; the message names the line.
    """
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        what = error.problem or "is not YAML"
        raise problems_error(
            source, {(): mark.line + 1 if mark else 1}, [Problem((), f"not valid YAML: {what}.")]
        ) from error
    except yaml.YAMLError as error:
        raise problems_error(source, {(): 1}, [Problem((), f"not valid YAML: {error}.")]) from error
    reader = _Reader(environ)
    value = None if node is None else reader.read(node, ())
    return Document(value, {(): 1, **reader.lines}, tuple(reader.problems))


@dataclass(slots=True)
class _Reader:
    environ: Mapping[str, str]
    lines: dict[Path, int] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    open_nodes: set[int] = field(default_factory=set)
    scalars: yaml.SafeLoader = field(default_factory=lambda: yaml.SafeLoader(""))

    def read(self, node: yaml.Node, path: Path) -> Any:  # noqa: ANN401 - YAML values
        self.lines.setdefault(path, node.start_mark.line + 1)
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, path)
        if id(node) in self.open_nodes:
            self.problems.append(Problem(path, "an alias must not stand inside what it names."))
            return None
        self.open_nodes.add(id(node))
        try:
            if isinstance(node, yaml.SequenceNode):
                return [self.read(item, (*path, index)) for index, item in enumerate(node.value)]
            return dict(self._pairs(node, path))
        finally:
            self.open_nodes.discard(id(node))

    def _pairs(self, node: yaml.Node, path: Path) -> Iterator[tuple[str, Any]]:
        seen: dict[str, int] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode) or key_node.tag != _STRING_TAG:
                self.problems.append(Problem(path, "keys are strings: put this one in quotes.", line))
                continue
            key = key_node.value
            if key in seen:
                self.problems.append(Problem((*path, key), f"this key was already given in line {seen[key]}.", line))
                continue
            seen[key] = line
            self.lines[(*path, key)] = line
            yield key, self.read(value_node, (*path, key))

    def _scalar(self, node: yaml.ScalarNode, path: Path) -> Any:  # noqa: ANN401 - YAML values
        if node.tag == _STRING_TAG and "${" in node.value:
            text = _VARIABLE.sub(lambda match: self._variable(match, path), node.value)
            tag = self._implicit_tag(text) if node.style is None else _STRING_TAG
            node = yaml.ScalarNode(tag, text, node.start_mark, node.end_mark)
        try:
            return self.scalars.construct_object(node)
        except (yaml.YAMLError, ValueError):
            self.problems.append(Problem(path, f"{node.value!r} is not a value of the type {node.tag}."))
            return None

    def _implicit_tag(self, text: str) -> str:
        tag: str = self.scalars.resolve(yaml.ScalarNode, text, (True, False))  # type: ignore[no-untyped-call] # stubs
        return tag

    def _variable(self, match: re.Match[str], path: Path) -> str:
        name = match["name"]
        if match["escape"]:
            return match[0][1:]
        value = self.environ.get(name)
        if match["has_default"]:
            return value or match["default"]
        if value is None:
            problem = f"the environment variable {name} is not set. Set it, or give a default: ${{{name}:-…}}."
            self.problems.append(Problem(path, problem))
            return ""
        return value
