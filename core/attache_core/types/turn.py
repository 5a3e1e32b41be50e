"""A turn on its way through the chain: the canonical request, and the facts that filters tell each other about it.

The body is the public create request of the Responses API as JSON, fields that we do not model included, plus, below
`rehydrate`, the items that only orchestration sees (`mcp_list_tools`, `mcp_call`, …). It is never changed in place.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from attache_core.json_codec import Json

DEFAULT_TENANT = "default"
"""Whose turns they are while a deployment has one tenant."""

RESPONSE_HEADER_PREFIX = "attache-"
"""What the names of the response headers begin with by which filters tell a client something."""

_HEADER_NAME = re.compile(rf"{RESPONSE_HEADER_PREFIX}[a-z0-9-]+")
_HEADER_VALUE = re.compile(r"[\x20-\x7e]*")


@dataclass(frozen=True, slots=True)
class Facts:
    """What filters of one turn tell the filters below them. Travels between segments as `x-attache-*` headers.

    Attributes:
        response_id: the public id of the response, given by whoever is outermost (`persist` where there is one).
        history_items: how many leading items of `input` come from the store; None until a filter has loaded history.
        conversation_revision: the state of the conversation that this turn reads, fixed by whoever holds it.
        tenant: whose turn this is; every stored row belongs to a tenant.
        stored: whether the turn will be stored, so that a later one can continue it; said by `persist`.
    """

    response_id: str | None = None
    history_items: int | None = None
    conversation_revision: int | None = None
    tenant: str = DEFAULT_TENANT
    stored: bool = False


@dataclass(frozen=True, slots=True)
class Unattended:
    """That a turn goes on to its end when its client has gone.

    Attributes:
        timeout_s: for how many seconds; then it is cancelled.
        max_turns: how many turns of one process may be without their clients; a further one is cancelled at once.
    """

    timeout_s: float
    max_turns: int


@dataclass(frozen=True, slots=True)
class TurnRequest:
    """The canonical request of one turn (or of one round, below the tool loop).

    Attributes:
        body: the create request; see the module docstring. Treat as read-only: use `with_body`.
        headers: the request's headers, names in lower case; no `x-attache-*` header among them.
        facts: see `Facts`.
        response_headers: what the HTTP response that the client gets is to carry; see `with_response_header`.
        unattended: what becomes of the turn when the client goes away; see `going_on`.
    """

    body: Json
    headers: Mapping[str, str] = field(default_factory=dict)
    facts: Facts = Facts()
    response_headers: Mapping[str, str] = field(default_factory=dict)
    unattended: Unattended | None = None

    @property
    def stream(self) -> bool:
        """Whether the client asked for server-sent events."""
        return self.body.get("stream") is True

    @property
    def store(self) -> bool:
        """Whether the turn is to be stored; the API's default is yes."""
        return self.body.get("store") is not False

    def with_body(self, **changes: Any) -> TurnRequest:  # noqa: ANN401 - JSON values
        """The same turn with some fields of the body replaced."""
        return self.with_whole_body({**self.body, **changes})

    def with_whole_body(self, body: Json) -> TurnRequest:
        """The same turn with another body."""
        # Several times a turn: `dataclasses.replace` takes three times as long.
        return TurnRequest(body, self.headers, self.facts, self.response_headers, self.unattended)

    def without(self, *fields: str) -> TurnRequest:
        """The same turn without some fields of the body."""
        if not any(name in self.body for name in fields):
            return self
        return self.with_whole_body({name: value for name, value in self.body.items() if name not in fields})

    def with_facts(self, **changes: Any) -> TurnRequest:  # noqa: ANN401 - the fields of Facts
        """The same turn with some facts replaced."""
        facts = replace(self.facts, **changes)
        return TurnRequest(self.body, self.headers, facts, self.response_headers, self.unattended)

    def going_on(self, unattended: Unattended) -> TurnRequest:
        """The same turn, which goes on to its end even when its client goes away, within these bounds.

        The host takes it when this turn is passed below, and only where the filter that says it has said so of its
        class and settings (`Filter.outlives_client`). From then on every call below takes the loop listener.
        """
        return replace(self, unattended=unattended)

    def with_response_header(self, name: str, value: str) -> TurnRequest:
        """The same turn with a header for the HTTP response, whatever that will be: JSON, a stream, or an error.

        The host takes it when this turn is passed below: neither filters below nor the inference server see it. It has
        no effect on a stream that has begun by then.

        Args:
            name: in lower case, beginning with `RESPONSE_HEADER_PREFIX`.
            value: printable ASCII.

        Raises:
            ValueError: it is no such name or value.
        """
        if not _HEADER_NAME.fullmatch(name):
            raise ValueError(f"{name!r} does not begin with {RESPONSE_HEADER_PREFIX!r}, or is no header's name.")
        if not _HEADER_VALUE.fullmatch(value):
            raise ValueError(f"The value of {name!r} is not printable ASCII.")
        return replace(self, response_headers={**self.response_headers, name: value})


def input_items(body: Json) -> list[Json]:
    """The `input` of a create request as a list of items; a string is one user message (API reference, "input")."""
    given = body.get("input")
    if given is None:
        return []
    if isinstance(given, str):
        return [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": given}]}]
    return list(given)
