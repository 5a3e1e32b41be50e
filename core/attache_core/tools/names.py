"""The names under which the model knows the tools of MCP servers.

A tool keeps its own name where that is a valid function name and no other tool of the request has it; otherwise the
server's label goes before it, and where that is still no valid or no unique name, a digest of both goes after it. So a
name depends on the declarations alone and never on the order in which servers answer. Pure.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence

MAX_NAME_LENGTH = 64
_VALID_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_INVALID_CHARACTER = re.compile(r"[^a-zA-Z0-9_-]")

Origin = tuple[str, str]
"""`(server_label, name)`: the server that a tool belongs to, and its name there."""


def is_valid_name(name: str) -> bool:
    """Whether a function may be called so (API reference, "Function tool", `name`)."""
    return _VALID_NAME.fullmatch(name) is not None


def model_names(origins: Sequence[Origin], taken: Collection[str]) -> list[str]:
    """A valid name for each tool, all different and none of them `taken`; `origins` must be different."""
    claims = Counter(name for _, name in origins)
    plain = {name for _, name in origins if is_valid_name(name) and claims[name] == 1 and name not in taken}
    used = {*taken, *plain}
    names: list[str] = []
    for origin in origins:
        name = origin[1] if origin[1] in plain else _first_free(labelled_names(origin), used)
        used.add(name)
        names.append(name)
    return names


def labelled_names(origin: Origin) -> Iterable[str]:
    """The names with the label before them that a tool may get, the most readable first."""
    label, name = origin
    readable = f"{label}__{name}"
    encoded = _INVALID_CHARACTER.sub("_", readable)
    if encoded == readable and len(encoded) <= MAX_NAME_LENGTH:
        yield encoded
    digest = hashlib.sha256(f"{label}\0{name}".encode(errors="surrogatepass")).hexdigest()
    for length in (8, 16, 32):
        yield f"{encoded[: MAX_NAME_LENGTH - 1 - length]}_{digest[:length]}"
    yield digest


def _first_free(candidates: Iterable[str], used: Collection[str]) -> str:
    return next(name for name in candidates if name not in used)
