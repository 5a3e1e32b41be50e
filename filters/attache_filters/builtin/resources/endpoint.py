"""What an endpoint of a resource is: a method, a path with ids in it, and a function that answers one call."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from attache_core.errors import ClientError
from attache_core.storage.store import Store
from attache_core.types.extensions import Extensions
from attache_core.types.shape import MAX_ID_CHARS
from attache_core.types.violation import quoted
from attache_filters.sdk.http import HttpResponse


@dataclass(frozen=True, slots=True)
class Call:
    """One request for a resource.

    Attributes:
        tenant: whose resources are meant; every call of the store names it.
        extensions: what installed tool types add to the items of a request.
        ids: those in the path, in order, decoded.
        query: the text after the question mark.
        body: as it came, decoded from its content coding.
    """

    store: Store
    tenant: str
    extensions: Extensions
    ids: tuple[str, ...]
    query: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One method on one path. `path` matches the whole path, and a group of it each id."""

    method: str
    path: re.Pattern[str]
    answer: Callable[[Call], Awaitable[HttpResponse]]


def endpoint(method: str, template: str, answer: Callable[[Call], Awaitable[HttpResponse]]) -> Endpoint:
    """An endpoint of a path in which `{}` stands for an id."""
    return Endpoint(method, re.compile(template.replace("{}", "([^/]+)")), answer)


def require_id(value: str, prefix: str, param: str) -> str:
    """`value`, which is an id of ours of that kind. Raises ClientError (400): it can be none."""
    if not re.fullmatch(rf"{prefix}_[A-Za-z0-9_-]{{1,{MAX_ID_CHARS - len(prefix) - 1}}}", value):
        raise ClientError(
            f"Invalid '{param}': {quoted(value)}. Expected an ID that begins with '{prefix}'.",
            param=param,
            code="invalid_value",
        )
    return value
