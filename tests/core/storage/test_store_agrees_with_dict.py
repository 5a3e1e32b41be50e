"""Any series of calls: the stores answer what a plain dict of turns answers."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Callable
from contextlib import AsyncExitStack

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from attache_core.json_codec import Json
from attache_core.storage import Store, StoredTurn
from attache_core.storage.engine import open_store
from attache_core.storage.migrate import migrate
from attache_core.testing.memory_store import MemoryStore
from postgresql_server import PostgresqlServer


def joined(text: str) -> str:
    """The same text with surrogate pairs joined, as JSON text has them: halves that meet are one character."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


def whole(turn: StoredTurn) -> tuple[object, ...]:
    """All that a stored turn holds."""
    return (turn.response, turn.input, turn.output)


def digits(value: object) -> str:
    """Every digit, every character and the order of keys; equal dicts may differ in these."""
    return json.dumps(value)


tenants = st.sampled_from(["a", "b"])
ids = st.sampled_from([f"resp_{number}" for number in range(5)])
item_ids = st.sampled_from([f"msg_{number}" for number in range(4)])
statuses = st.sampled_from(["completed", "failed"])
texts = st.text(st.characters(exclude_categories=()), max_size=5).map(joined)
numbers = st.integers() | st.integers(2**64, 2**80) | st.floats(allow_nan=False, allow_infinity=False)
values = st.none() | st.booleans() | numbers | texts | st.dictionaries(texts, numbers | texts, max_size=3)
new_items = st.builds(lambda item_id, value, key: {key: value, "id": item_id}, item_ids, values, texts)


class StoresAndDict(RuleBasedStateMachine):
    """All stores beside the model. A turn continues only an earlier one, or one that will never exist."""

    server_url: Callable[[], str]
    """A migrated database of a server, without rows."""

    def __init__(self) -> None:
        super().__init__()
        self.turns: dict[tuple[str, str], StoredTurn] = {}
        self.items: dict[tuple[str, str], Json] = {}
        self.runner = asyncio.Runner()
        self.stack = AsyncExitStack()
        self.stores = self.runner.run(self._open())

    async def _open(self) -> list[Store]:
        directory = self.stack.enter_context(tempfile.TemporaryDirectory())
        url = f"sqlite:///{directory}/attache.db"
        migrate(url)
        stores = [await self.stack.enter_async_context(open_store(each)) for each in (url, self.server_url())]
        return [*stores, MemoryStore()]

    def teardown(self) -> None:
        self.runner.run(self.stack.aclose())
        self.runner.close()

    @rule(
        tenant=tenants,
        response_id=ids,
        previous_id=st.none() | ids,
        status=statuses,
        items=st.lists(new_items, max_size=4),
    )
    def save(self, tenant: str, response_id: str, previous_id: str | None, status: str, items: list[Json]) -> None:
        if previous_id is not None and (tenant, previous_id) not in self.turns:
            previous_id = "resp_none"
        head = {"id": response_id, "previous_response_id": previous_id, "status": status}
        turn = StoredTurn({**head, "output": items[2:]}, items[:2])
        for store in self.stores:
            self.runner.run(store.save_turn(tenant, turn))
        if (tenant, response_id) not in self.turns and status != "failed":
            self.items.update({(tenant, item["id"]): item for item in items})
        self.turns.setdefault((tenant, response_id), turn)

    @rule(tenant=tenants, response_id=ids)
    def load(self, tenant: str, response_id: str) -> None:
        chain = self._chain(tenant, response_id)
        for store in self.stores:
            loaded = self.runner.run(store.load_chain(tenant, response_id))
            assert loaded == chain
            assert digits([whole(turn) for turn in loaded]) == digits([whole(turn) for turn in chain])
            response = self.runner.run(store.load_response(tenant, response_id))
            assert response == (chain[-1].response if chain else None)

    @rule(tenant=tenants, wanted=st.sets(item_ids | st.just("msg_none")))
    def load_items(self, tenant: str, wanted: set[str]) -> None:
        known = {key: self.items[tenant, key] for key in wanted if (tenant, key) in self.items}
        for store in self.stores:
            found = self.runner.run(store.load_items(tenant, wanted))
            assert found == known
            assert {key: digits(item) for key, item in found.items()} == {key: digits(known[key]) for key in known}

    def _chain(self, tenant: str, response_id: str | None) -> list[StoredTurn]:
        turn = self.turns.get((tenant, response_id or ""))
        return [*self._chain(tenant, turn.response["previous_response_id"]), turn] if turn else []


class TestStoresAgreeWithDict(StoresAndDict.TestCase):  # type: ignore[misc,valid-type]  # a class made at run time
    """Run by pytest."""

    settings = settings(max_examples=15, stateful_step_count=15, deadline=None)

    @pytest.fixture(autouse=True)
    def _server(self, postgresql: PostgresqlServer, migrated_server_url: str) -> None:
        StoresAndDict.server_url = staticmethod(lambda: postgresql.empty(migrated_server_url))
