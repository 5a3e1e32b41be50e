"""Whether a store holds what clients were told, and nothing else.

Pure. A conversation is right when it is a list of whole turns (what a client said, what the model answered), when every
turn that a client was told of is there once, and no refused one is; when a turn that was sent after another had ended
stands after it; and when the model, in each turn, had heard exactly what stands before it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from attache_core.json_codec import Json
from soak.told import Told, answer_to, digest, text_of


@dataclass(frozen=True, slots=True)
class Found:
    """What a gateway shows after the soak.

    Attributes:
        conversations: their items, oldest first, by id.
        responses: the stored response of each completed turn, by id; None where there is none.
        heard: by the words of a turn, the digest of the texts that the model heard before them.
    """

    conversations: Mapping[str, Sequence[Json]]
    responses: Mapping[str, Json | None]
    heard: Mapping[str, str]


def faults(told: Sequence[Told], found: Found) -> list[str]:
    """What is wrong, in words; nothing when all is well."""
    turns = {turn.words: turn for turn in told}
    wrong = [*_responses(told, found)]
    for name, items in found.conversations.items():
        mine = [turn for turn in told if turn.conversation == name]
        texts = [text_of(item) for item in items]
        said = texts[::2]
        wrong += _whole(name, texts)
        wrong += _membership(name, mine, said)
        wrong += _order(name, [turns[words] for words in said if words in turns])
        wrong += _heard(name, texts, found.heard)
        wrong += _same_items(mine, {item["id"] for item in items})
    return wrong


def _responses(told: Sequence[Told], found: Found) -> Iterator[str]:
    for turn in told:
        if turn.response is not None and found.responses.get(turn.response["id"]) != turn.response:
            yield f"{turn.words}: the response {turn.response['id']} is not stored as it was told"


def _whole(name: str, texts: Sequence[str]) -> Iterator[str]:
    if len(texts) % 2:
        yield f"{name}: half a turn is in it"
    for words, answer in zip(texts[::2], texts[1::2], strict=False):
        if answer != answer_to(words):
            yield f"{name}: {words!r} is followed by {answer!r}"


def _membership(name: str, mine: Sequence[Told], said: Sequence[str]) -> Iterator[str]:
    counts = Counter(said)
    yield from (f"{words}: {count} times in {name}" for words, count in counts.items() if count > 1)
    yield from (f"{words}: in {name}, and nobody said it there" for words in counts.keys() - {t.words for t in mine})
    for turn in mine:
        if turn.outcome == "completed" and turn.words not in counts:
            yield f"{turn.words}: told to be complete, and not in {name}"
        if turn.outcome == "refused" and turn.words in counts:
            yield f"{turn.words}: refused ({turn.told}), and in {name}"


def _order(name: str, turns: Sequence[Told]) -> Iterator[str]:
    """Each turn against the latest begin of those before it: none of them may have been sent after it had ended."""
    latest: Told | None = None
    for turn in turns:
        if latest is not None and turn.outcome == "completed" and turn.ended_at < latest.sent_at:
            yield f"{turn.words}: ended before {latest.words} was sent, and stands after it in {name}"
        latest = turn if latest is None or turn.sent_at > latest.sent_at else latest


def _heard(name: str, texts: Sequence[str], heard: Mapping[str, str]) -> Iterator[str]:
    for position in range(0, len(texts), 2):
        if heard.get(texts[position]) != digest(texts[:position]):
            yield f"{texts[position]}: the model had not heard what stands before it in {name}"


def _same_items(mine: Sequence[Told], ids: set[str]) -> Iterator[str]:
    for turn in mine:
        if turn.response is not None and not {item["id"] for item in turn.response["output"]} <= ids:
            yield f"{turn.words}: its items have other ids in the conversation"
