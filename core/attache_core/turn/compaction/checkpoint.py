"""What a checkpoint stands for, and how the model is told of it.

A checkpoint is whole: nothing that stands before it in a conversation is needed to tell it. Source: OpenAI's guide on
compaction ("drop items that came before the most recent compaction item"); tests/cassettes/compaction for its place
between the user's messages and what came later, and for its role.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from attache_core.json_codec import Json


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Older items in short.

    Attributes:
        before: messages among them that are told word for word: the user's, and those that give orders.
        summary: what the model wrote of all of them.
        after: what is told word for word after the summary, because it was being worked on.
    """

    before: tuple[Json, ...]
    summary: str
    after: tuple[Json, ...] = ()

    @property
    def told(self) -> list[Json]:
        """The items that the model is told in the place of the older ones.

        The summary is the model's own words, but where it would be the first message: many chat templates take only
        the user's there.
        """
        if all(item.get("role") != "user" for item in self.before):
            return [*self.before, text_message("user", self.summary), *self.after]
        content: list[Json] = [{"type": "output_text", "text": self.summary}]
        return [*self.before, {"type": "message", "role": "assistant", "content": content}, *self.after]


def compaction_item(item_id: str, encrypted_content: str) -> Json:
    """The public item of a checkpoint."""
    return {"id": item_id, "type": "compaction", "encrypted_content": encrypted_content}


def text_message(role: str, text: str) -> Json:
    """A message of plain text, as an input item."""
    return {"type": "message", "role": role, "content": text}


def without_type(items: Sequence[Json], kind: str) -> list[Json]:
    """The items that are not of that type."""
    return [item for item in items if item.get("type") != kind]
