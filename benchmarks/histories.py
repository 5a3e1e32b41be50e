"""What a turn costs after a history, by its length: stored turns that it continues, or a conversation's items.

Each gateway gets one chain of stored turns, and conversations made of items. Turns that continue the chain at several
depths, and turns in conversations of several sizes, are asked of one gateway after the other, one request under way;
beside each, the model server itself is asked with as many input items. What a turn adds is taken within a repetition.
A turn after a depth leaves the chain as it is; a conversation grows with each turn in it, and is made anew once it is
more than a tenth longer. What a turn stores is what the gateway's database gained while the chain was built.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import cycle, islice
from statistics import median
from typing import Literal

from attache_core.json_codec import Json
from benchmarks.plan import JSON_MODEL, QUESTION, Plan
from benchmarks.stored_bytes import stored_bytes
from benchmarks.targets import Target
from benchmarks.times import Times
from benchmarks.turns import Turns

WARMUP = 3
"""Repetitions that are not counted."""

EDGE_TURNS = 10
"""What is stored is compared between the first and the last so many turns of the chain."""

ITEMS_PER_CALL = 20
"""The API takes no more at once."""

ITEMS_PER_TURN = 2
"""The question and the answer."""

_SPOKEN: tuple[Json, ...] = (
    {"type": "message", "role": "user", "content": QUESTION},
    {
        "type": "message",
        "role": "assistant",
        "content": [
            {"type": "output_text", "text": "word0 word1 word2 word3 word4 word5 word6 word7 ", "annotations": []}
        ],
    },
)


@dataclass(frozen=True, slots=True)
class History:
    """What a measured turn comes after: `length` turns of a chain, or items of a conversation."""

    kind: Literal["chain", "conversation"]
    length: int
    store: bool

    @property
    def items(self) -> int:
        """How many items the model is sent before the question."""
        return self.length * ITEMS_PER_TURN if self.kind == "chain" else self.length


@dataclass(frozen=True, slots=True)
class HistoryResult:
    """Turns through one gateway after one history: medians, in milliseconds.

    Attributes:
        direct_ms: the model server's own turn with as many items.
        added_ms: what the turn takes longer than that.
        added_best_ms: the same of the fastest of each, which other load on the machine disturbs least.
        errors: turns that did not succeed.
    """

    target: str
    history: History
    turn_ms: float
    direct_ms: float
    added_ms: float
    added_best_ms: float
    errors: int


@dataclass(frozen=True, slots=True)
class StoredResult:
    """Bytes that a turn of the chain added to one gateway's database: among the first turns, among the last."""

    target: str
    first_bytes: float
    last_bytes: float


@dataclass(frozen=True, slots=True)
class HistoriesResult:
    """Everything of one measurement."""

    repetitions: int
    chain_turns: int
    turns: list[HistoryResult]
    stored: list[StoredResult]


def histories_of(plan: Plan) -> list[History]:
    """In the order in which they are asked. Turns in a conversation are stored: that is what it is for."""
    chains = [History("chain", depth, store) for store in (False, True) for depth in plan.depths]
    return [*chains, *(History("conversation", items, store=True) for items in plan.conversation_items)]


async def measure_histories(model: Target, gateways: Sequence[Target], plan: Plan) -> HistoriesResult:
    """Measure turns after histories through every gateway, see the module docstring; RuntimeError when one has none."""
    histories = histories_of(plan)
    times = Times()
    with ExitStack() as stack:
        direct = Turns(model.url)
        stack.callback(direct.close)
        keepers = [_Keeper(gateway, Turns(gateway.url)) for gateway in gateways]
        for keeper in keepers:
            stack.callback(keeper.turns.close)
        stored = [await keeper.build_chain(max(plan.depths)) for keeper in keepers]
        for number in range(plan.history_repetitions + WARMUP):
            if number == WARMUP:
                times = Times()
            for history in histories:
                await _measure_beside(times, history, direct, keepers)
    turns = [_result(gateway, history, times) for history in histories for gateway in gateways]
    return HistoriesResult(plan.history_repetitions, max(plan.depths), turns, stored)


@dataclass(slots=True)
class _Keeper:
    """One gateway, and what it has been made to store: the chain's ids, and by size a conversation and its turns."""

    target: Target
    turns: Turns
    chain: list[str] = field(default_factory=list)
    conversations: dict[int, tuple[str, int]] = field(default_factory=dict)

    async def build_chain(self, length: int) -> StoredResult:
        edge = min(EDGE_TURNS, length)
        sizes = [self._stored_bytes()]
        for _ in range(length):
            body: Json = {"model": JSON_MODEL, "input": QUESTION}
            if self.chain:
                body["previous_response_id"] = self.chain[-1]
            self.chain.append(str((await self._created("/v1/responses", body))["id"]))
            sizes.append(self._stored_bytes())
        return StoredResult(self.target.name, (sizes[edge] - sizes[0]) / edge, (sizes[-1] - sizes[-1 - edge]) / edge)

    async def body(self, history: History) -> Json:
        """A turn after the history, which is there when this returns."""
        body: Json = {"model": JSON_MODEL, "input": QUESTION, "store": history.store}
        if history.kind == "chain":
            return {**body, "previous_response_id": self.chain[history.length - 1]}
        return {**body, "conversation": await self._conversation(history.length)}

    async def _conversation(self, length: int) -> str:
        conversation, turns = self.conversations.get(length, ("", 0))
        if not conversation or turns * ITEMS_PER_TURN * 10 > length:
            conversation, turns = await self._new_conversation(length), 0
        self.conversations[length] = (conversation, turns + 1)
        return conversation

    async def _new_conversation(self, length: int) -> str:
        conversation = str((await self._created("/v1/conversations", {}))["id"])
        for start in range(0, length, ITEMS_PER_CALL):
            items = _items(min(ITEMS_PER_CALL, length - start))
            await self._created(f"/v1/conversations/{conversation}/items", {"items": items})
        return conversation

    async def _created(self, path: str, body: Json) -> Json:
        exchanged, created = await self.turns.ask(body, path)
        if exchanged.status != 200:
            raise RuntimeError(f"{self.target.name} answers {exchanged.status}: {exchanged.body[:500]!r}")
        return created

    def _stored_bytes(self) -> int:
        assert self.target.database is not None
        return stored_bytes(self.target.database)


async def _measure_beside(times: Times, history: History, direct: Turns, keepers: Sequence[_Keeper]) -> None:
    """One repetition: the model server's own turn, then one through each gateway."""
    await times.measure(_name("direct", history), _asked(direct, _alone(history)))
    for keeper in keepers:
        body = await keeper.body(history)
        await times.measure(_name(keeper.target.name, history), _asked(keeper.turns, body))


def _items(count: int) -> list[Json]:
    return list(islice(cycle(_SPOKEN), count))


def _alone(history: History) -> Json:
    """The same turn for the model server, which is sent what a gateway has stored."""
    return {"model": JSON_MODEL, "input": [*_items(history.items), _SPOKEN[0]], "store": False}


def _asked(turns: Turns, body: Json) -> Callable[[], Awaitable[bool]]:
    async def ask() -> bool:
        return (await turns.ask(body))[0].status == 200

    return ask


def _name(target: str, history: History) -> str:
    return f"{target}, {history}"


def _result(gateway: Target, history: History, times: Times) -> HistoryResult:
    turn, direct = _name(gateway.name, history), _name("direct", history)
    return HistoryResult(
        target=gateway.name,
        history=history,
        turn_ms=median(times.taken[turn]),
        direct_ms=median(times.taken[direct]),
        added_ms=times.added(turn, direct),
        added_best_ms=times.added_at_best(turn, direct),
        errors=times.errors[turn] + times.errors[direct],
    )
