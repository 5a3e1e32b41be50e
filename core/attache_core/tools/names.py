"""The names under which the model knows tools.

A tool that may keep its own name does, where that is a valid function name and no other tool of the request has it;
otherwise its owner's name (a server's label, a namespace) goes before it, and where that is still no valid or no unique
name, a digest of both goes after it. So a name depends on the declarations alone and never on the order in which
servers answer. Pure.
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
"""`(owner, name)`: what a tool belongs to, and its name there."""


def is_valid_name(name: str) -> bool:
    """Whether a function may be called so (API reference, "Function tool", `name`)."""
    return _VALID_NAME.fullmatch(name) is not None


def model_names(origins: Sequence[Origin], taken: Collection[str], labelled: Collection[Origin] = ()) -> list[str]:
    """A valid name for each tool, all different and none of them `taken`; those of `labelled` never their own alone."""
    free = [origin for origin in origins if origin not in labelled]
    claims = Counter(name for _, name in free)
    plain = {name for _, name in free if is_valid_name(name) and claims[name] == 1 and name not in taken}
    used = {*taken, *plain}
    names: list[str] = []
    for origin in origins:
        keeps = origin[1] in plain and origin not in labelled
        name = origin[1] if keeps else _first_free(_labelled_names(origin), used)
        used.add(name)
        names.append(name)
    return names


def _labelled_names(origin: Origin) -> Iterable[str]:
    """The names with the owner's before them that a tool may get, the most readable first; at most 64 characters each.

    There is always one more, so that some name is free.
    """
    owner, name = origin
    readable = f"{owner}__{name}"
    encoded = _INVALID_CHARACTER.sub("_", readable)
    if encoded == readable and len(encoded) <= MAX_NAME_LENGTH:
        yield encoded
    digest = hashlib.sha256(f"{owner}\0{name}".encode(errors="surrogatepass")).hexdigest()
    for length in (8, 16, 32):
        yield f"{encoded[: MAX_NAME_LENGTH - 1 - length]}_{digest[:length]}"
    yield digest
    while True:
        digest = hashlib.sha256(digest.encode()).hexdigest()
        yield digest


def former_name(origin: Origin, known: Collection[str], *, labelled: bool = False) -> str:
    """A name for a tool of the past, which must not be mistaken for one of the `known`; if `labelled`, not its own."""
    if not labelled and is_valid_name(origin[1]) and origin[1] not in known:
        return origin[1]
    return _first_free(_labelled_names(origin), known)


def _first_free(candidates: Iterable[str], used: Collection[str]) -> str:
    return next(name for name in candidates if name not in used)
