"""A turn as the row that is stored of it, and back. Pure; unaware of databases.

The columns beside `input` and `response` are copies of facts in the response, for queries and operators. A fact of a
type or size that a database refuses is left out of its column and kept in the JSON.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields

from attache_core.json_codec import Json, decode_all_exactly, decode_exactly, encode
from attache_core.storage.store import StoredTurn

_MAX_INT64 = 2**63 - 1

MAX_KEY_BYTES = 1024
"""What a tenant or an id may have to be a key, as UTF-8: PostgreSQL indexes no row of two that are much larger."""


@dataclass(frozen=True, slots=True)
class TurnRow:
    """One row of the table `responses`: its fields are the columns."""

    tenant: str
    id: str
    previous_id: str | None
    created_at: int | None
    status: str | None
    input: bytes
    response: bytes
    output_at: int | None = None
    output_bytes: int | None = None

    @property
    def size_bytes(self) -> int:
        """The stored JSON, in bytes."""
        return len(self.input) + len(self.response)

    def values(self) -> dict[str, object]:
        """Column name to value."""
        return {column: getattr(self, column) for column in _COLUMNS}


_COLUMNS = tuple(column.name for column in fields(TurnRow))


def to_row(tenant: str, turn: StoredTurn) -> TurnRow:
    """The row of a turn.

    Raises:
        ValueError: the tenant or the response's `id` is no text that can be a key.
    """
    response = turn.response
    response_id = response.get("id")
    if not isinstance(response_id, str) or not is_key(response_id) or not is_key(tenant):
        raise ValueError("a stored turn needs a tenant and a response id of plain text")
    encoded = encode(response)
    output_at, output_bytes = _place(response.get("output"), encoded)
    return TurnRow(
        tenant=tenant,
        id=response_id,
        previous_id=_text(response.get("previous_response_id")),
        created_at=_int64(response.get("created_at")),
        status=_text(response.get("status")),
        input=encode(list(turn.input)),
        response=encoded,
        output_at=output_at,
        output_bytes=output_bytes,
    )


def to_turn(stored_input: bytes, stored_response: bytes) -> StoredTurn:
    """The turn of which these are the stored bytes; `input` is a list."""
    return StoredTurn(response=decode_exactly(stored_response), input=decode_exactly(stored_input))


def to_turns(stored: Sequence[tuple[bytes, bytes, int | None, int | None]]) -> list[StoredTurn]:
    """The turns of which these are the stored bytes: input and response of each, and where in that its output is.

    Of a response whose place of the output is known, only that is decoded.
    """
    texts: list[bytes] = []
    for given, response, at, size in stored:
        texts += (given, response if at is None or size is None else response[at : at + size])
    decoded = decode_all_exactly(texts)
    return [
        StoredTurn(found, given) if at is None or size is None else StoredTurn(response, given, found)
        for (_, response, at, size), given, found in zip(stored, decoded[::2], decoded[1::2], strict=True)
    ]


def items_by_id(turn: StoredTurn) -> dict[str, Json]:
    """The items of a turn that can be found by their id; of several with one id, the last.

    None when the turn failed or was cancelled: nobody may build on what it holds. An id that no database takes as a key
    is no name.
    """
    if turn.response.get("status") in ("failed", "cancelled"):
        return {}
    return {item["id"]: item for item in turn_items(turn) if _text(item.get("id"))}


def turn_items(turn: StoredTurn) -> list[Json]:
    """What a turn adds to the conversation: what was sent, then what was answered."""
    return [*turn.input, *_objects(turn.response.get("output"))]


def is_key(text: str) -> bool:
    """Whether every database takes this text as a key: not empty, not too long, no NUL, no lone surrogate."""
    if not text or len(text) > MAX_KEY_BYTES or "\0" in text:
        return False
    try:
        return len(text.encode()) <= MAX_KEY_BYTES
    except UnicodeEncodeError:
        return False


def _place(output: object, response: bytes) -> tuple[int, int] | tuple[None, None]:
    """Where a response's text has that of its output, as (first byte, bytes); wherever the text is, it is the same."""
    if not isinstance(output, list):
        return None, None
    text = encode(output)
    at = response.find(text)
    return (None, None) if at < 0 else (at, len(text))


def _objects(output: object) -> Iterable[Json]:
    return (item for item in output if isinstance(item, dict)) if isinstance(output, list) else ()


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and is_key(value) else None


def _int64(value: object) -> int | None:
    return value if type(value) is int and abs(value) <= _MAX_INT64 else None
