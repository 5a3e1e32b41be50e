"""What became of calls that a user was asked for, put where the model made them. Pure.

A conversation has three items for such a call: the request where the model made it, in a later turn the user's answer,
and after that, where the call was approved, the `mcp_call`. The model made one call and is told of one, in the place of
the request, whatever stands between the three. A denied call leaves no item of its own, and that of an approved one may
have been removed: what the model is told then is made of the request and the answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attache_core.json_codec import Json

REQUEST = "mcp_approval_request"
RESPONSE = "mcp_approval_response"


def with_outcomes(items: Sequence[Json]) -> list[Json]:
    """The items with each answered request replaced by an `mcp_call`, and nothing left that says it a second time."""
    requests = {request_id(item): item for item in reversed(items) if item.get("type") == REQUEST and request_id(item)}
    if not requests:
        return list(items)
    outcomes = _outcomes(items, requests)
    told: list[Json] = []
    for item in items:
        kind, asked = item.get("type"), request_id(item)
        if kind == REQUEST and asked in outcomes:
            told.append(outcomes.pop(asked))
        elif not (kind == "mcp_call" and asked is not None and asked in requests):
            told.append(item)
    return told


def calls_by_request(items: Sequence[Json]) -> dict[str | None, Json]:
    """The `mcp_call` items that were made after an approval, by the id of its request."""
    return {request_id(item): item for item in items if item.get("type") == "mcp_call" and request_id(item)}


def request_id(item: Json) -> str | None:
    """The id of the request that an item is, answers, or was made after; None where it says none that can be one."""
    given = item.get("id" if item.get("type") == REQUEST else "approval_request_id")
    return given if isinstance(given, str) else None


def _outcomes(items: Sequence[Json], requests: Mapping[str | None, Json]) -> dict[str | None, Json]:
    """The calls that were made, and of others what stands for them, by the id of the request."""
    outcomes = calls_by_request(items)
    for item in items:
        request = requests.get(request_id(item)) if item.get("type") == RESPONSE else None
        if request is not None:
            outcomes.setdefault(request_id(request), _not_made(request, item))
    return outcomes


def _not_made(request: Json, response: Mapping[str, object]) -> Json:
    reason = None
    if response.get("approve") is True:
        said = "The user approved this call, but this conversation has no result of it."
    else:
        reason, said = response.get("reason"), "The user did not approve this call: it was not run."
    return {
        "type": "mcp_call",
        "id": request.get("id"),
        "server_label": request.get("server_label"),
        "name": request.get("name"),
        "arguments": request.get("arguments"),
        "output": f"{said} The user's reason: {reason}" if reason else said,
    }
