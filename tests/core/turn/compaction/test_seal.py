"""Checkpoints are opaque, and open for nobody but the deployment and the tenant that they were made for."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attache_core.errors import ClientError
from attache_core.turn.compaction.checkpoint import Checkpoint
from attache_core.turn.compaction.seal import Seal
from attache_core.turn.compaction.settings import CompactionKey

OLD, NEW = (CompactionKey.read(base64.b64encode(letter * 32).decode()) for letter in (b"o", b"n"))
CHECKPOINT = Checkpoint(
    before=({"type": "message", "role": "user", "content": "Tea?"},),
    summary="They want tea.",
    after=({"type": "function_call_output", "call_id": "call_1", "output": [{"n": 10**30}]},),
)


def refusal(seal: Seal, text: str, tenant: str = "default") -> tuple[int, str | None, str]:
    with pytest.raises(ClientError) as refused:
        seal.open(tenant, text)
    return refused.value.http_status, refused.value.code, refused.value.message


def test_checkpoint_comes_back_as_it_was() -> None:
    seal = Seal([NEW])
    assert seal.open("default", seal.close("default", CHECKPOINT)) == CHECKPOINT


@given(st.text(st.characters()))
def test_any_text_comes_back_as_it_was(summary: str) -> None:
    seal = Seal([NEW])
    said = Checkpoint((), summary)
    assert seal.open("default", seal.close("default", said)) == said


def test_nothing_of_it_can_be_read() -> None:
    text = Seal([NEW]).close("default", CHECKPOINT)
    assert b"tea" not in base64.urlsafe_b64decode(text).lower()


def test_altered_foreign_and_made_up_content_is_refused_in_the_same_words() -> None:
    seal = Seal([NEW])
    text = seal.close("default", CHECKPOINT)
    place = len(text) // 2
    altered = text[:place] + ("A" if text[place] != "A" else "B") + text[place + 1 :]
    refusals = {
        refusal(seal, altered),
        refusal(seal, text[:-8]),
        refusal(seal, text, "another tenant"),
        refusal(seal, Seal([OLD]).close("default", CHECKPOINT)),
        refusal(seal, ""),
        refusal(seal, "gAAAA\ud83d"),
    }
    assert {(status, code) for status, code, _ in refusals} == {(400, "invalid_encrypted_content")}
    assert len(refusals) == 1


def test_first_key_closes_and_every_key_opens() -> None:
    text = Seal([OLD]).close("default", CHECKPOINT)
    rotated = Seal([NEW, OLD])
    assert rotated.open("default", text) == CHECKPOINT
    assert Seal([NEW]).open("default", rotated.close("default", CHECKPOINT)) == CHECKPOINT


@pytest.mark.parametrize("wrong", ["", "short", base64.b64encode(b"k" * 31).decode(), "%" * 44, 7, None])
def test_key_that_is_none_is_refused_without_being_repeated(wrong: object) -> None:
    with pytest.raises(ValueError, match=r"^a key is 32 random bytes in base64, such as"):
        CompactionKey.read(wrong)


def test_key_is_read_in_both_alphabets_of_base64() -> None:
    key = b"\xfb\xff" * 16
    assert CompactionKey.read(base64.b64encode(key).decode()) == CompactionKey.read(
        base64.urlsafe_b64encode(key).decode()
    )
