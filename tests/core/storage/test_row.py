"""Turns as rows, and back."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attache_core.storage.row import MAX_KEY_BYTES, TurnRow, is_key, to_row, to_turn, to_turns
from attache_core.storage.store import StoredTurn

Json = dict[str, Any]


def _joined(text: str) -> str:
    """The same text with surrogate pairs joined, as JSON text has them: halves that meet are one character."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


texts = st.text(st.characters(exclude_categories=())).map(_joined)
numbers = st.integers() | st.integers(2**64, 2**80) | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda children: st.lists(children, max_size=4) | st.dictionaries(texts, children, max_size=4),
    max_leaves=12,
)
objects = st.dictionaries(texts, values, max_size=5)


def test_to_row_of_a_turn_answers_its_columns() -> None:
    response = {"id": "resp_2", "previous_response_id": "resp_1", "created_at": 7, "status": "completed", "x": "é"}
    turn = StoredTurn(response=response, input=({"type": "message"},))
    assert to_row("t", turn) == TurnRow(
        tenant="t",
        id="resp_2",
        previous_id="resp_1",
        created_at=7,
        status="completed",
        input=b'[{"type":"message"}]',
        response='{"id":"resp_2","previous_response_id":"resp_1","created_at":7,"status":"completed","x":"é"}'.encode(),
    )


@pytest.mark.parametrize("odd", [None, "", "\0", "\udfff", 2**63, -(2**64), 1.5, True, [], {}], ids=repr)
def test_to_row_with_odd_facts_leaves_their_columns_empty(odd: object) -> None:
    response = {"id": "resp_1", "previous_response_id": odd, "created_at": odd, "status": odd}
    row = to_row("t", StoredTurn(response=response, input=[]))
    assert (row.previous_id, row.created_at, row.status) == (None, None, None)
    assert to_turn(row.input, row.response).response == response


@given(response=objects, items=st.lists(objects, max_size=3))
@settings(max_examples=100)
def test_any_json_comes_back_with_its_keys_in_order(response: Json, items: list[Json]) -> None:
    turn = StoredTurn(response={**response, "id": "resp_1"}, input=items)
    row = to_row("t", turn)
    loaded = to_turn(row.input, row.response)
    assert loaded == turn
    assert json.dumps([loaded.response, loaded.input]) == json.dumps([turn.response, turn.input])


@given(response=objects, outputs=st.lists(st.lists(objects, max_size=3) | st.none() | texts, max_size=3))
@settings(max_examples=100)
def test_turns_of_a_chain_come_back_as_each_alone(response: Json, outputs: list[Any]) -> None:
    turns = [StoredTurn({**response, "output": output, "id": "resp_1"}, [{"id": "msg_1"}]) for output in outputs]
    rows = [to_row("t", turn) for turn in turns]
    loaded = to_turns([(row.input, row.response, row.output_at, row.output_bytes) for row in rows])
    assert [turn.output for turn in loaded] == outputs
    assert loaded == turns == to_turns([(row.input, row.response, None, None) for row in rows])


def test_of_a_turn_of_a_chain_its_output_alone_is_decoded_until_the_response_is_asked_for() -> None:
    row = to_row("t", StoredTurn({"id": "resp_1", "output": [{"id": "msg_1"}], "status": "completed"}, []))
    assert (row.output_at, row.output_bytes) == (len(b'{"id":"resp_1","output":'), len(b'[{"id":"msg_1"}]'))
    (turn,) = to_turns([(row.input, b"not JSON, but for " + row.response[24:], 18, row.output_bytes)])
    assert turn.output == [{"id": "msg_1"}]
    with pytest.raises(ValueError, match=r"Expecting"):
        _ = turn.response


@given(st.text(st.characters(exclude_categories=())))
def test_is_key_admits_what_utf8_and_databases_admit(text: str) -> None:
    try:
        encoded = text.encode()
    except UnicodeEncodeError:
        encoded = b""
    assert is_key(text) is (encoded != b"" and b"\0" not in encoded)


def test_key_has_as_many_bytes_as_the_smallest_database_indexes() -> None:
    assert [is_key("é" * (MAX_KEY_BYTES // 2)), is_key("é" * (MAX_KEY_BYTES // 2) + "x")] == [True, False]
