"""Any series of calls: the stores answer what a plain dict of turns answers."""

from __future__ import annotations

import asyncio
import tempfile
from contextlib import AsyncExitStack

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from attache_core.json_codec import Json
from attache_core.storage import Store, StoredTurn
from attache_core.storage.engine import open_store
from attache_core.storage.migrate import migrate
from attache_core.testing.memory_store import MemoryStore

tenants = st.sampled_from(["a", "b"])
ids = st.sampled_from([f"resp_{number}" for number in range(5)])
item_ids = st.sampled_from([f"msg_{number}" for number in range(4)])
statuses = st.sampled_from(["completed", "failed"])
texts = st.text(max_size=5)


class StoresAndDict(RuleBasedStateMachine):
    """Both stores beside the model. A turn continues only an earlier one, or one that will never exist."""

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
        return [await self.stack.enter_async_context(open_store(url)), MemoryStore()]

    def teardown(self) -> None:
        self.runner.run(self.stack.aclose())
        self.runner.close()

    @rule(
        tenant=tenants,
        response_id=ids,
        previous_id=st.none() | ids,
        status=statuses,
        items=st.lists(st.builds(lambda item_id, text: {"id": item_id, "text": text}, item_ids, texts), max_size=4),
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
            assert self.runner.run(store.load_chain(tenant, response_id)) == chain
            response = self.runner.run(store.load_response(tenant, response_id))
            assert response == (chain[-1].response if chain else None)

    @rule(tenant=tenants, wanted=st.sets(item_ids | st.just("msg_none")))
    def load_items(self, tenant: str, wanted: set[str]) -> None:
        known = {key: self.items[tenant, key] for key in wanted if (tenant, key) in self.items}
        for store in self.stores:
            assert self.runner.run(store.load_items(tenant, wanted)) == known

    def _chain(self, tenant: str, response_id: str | None) -> list[StoredTurn]:
        turn = self.turns.get((tenant, response_id or ""))
        return [*self._chain(tenant, turn.response["previous_response_id"]), turn] if turn else []


class TestStoresAgreeWithDict(StoresAndDict.TestCase):  # type: ignore[misc,valid-type]  # a class made at run time
    """Run by pytest."""

    settings = settings(max_examples=15, stateful_step_count=15, deadline=None)
