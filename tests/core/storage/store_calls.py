"""Every call of a store, each with a secret in what it is asked, to see what becomes of them when a store fails."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from attache_core.json_codec import Json
from attache_core.storage import Conversation, Lease, Store
from attache_core.storage.approvals import ApprovalAnswer, PendingApproval
from attache_core.testing.store_contract import stored_turn
from attache_core.types.paging import Page

Call = Callable[[Store], Awaitable[object]]

CANARY = "a-secret-that-must-not-be-logged"
LEASE = Lease(CANARY, CANARY, 0)
ITEMS: list[Json] = [{"id": CANARY, "said": CANARY}]
CALLS: dict[str, Call] = {
    "save_turn": lambda store: store.save_turn("t", stored_turn("resp_2", user=CANARY)),
    "load_chain": lambda store: store.load_chain("t", CANARY),
    "load_items": lambda store: store.load_items("t", [CANARY]),
    "load_response": lambda store: store.load_response("t", CANARY),
    "load_turn": lambda store: store.load_turn("t", CANARY),
    "delete_turn": lambda store: store.delete_turn("t", CANARY),
    "save_turn with a lease": lambda store: store.save_turn("t", stored_turn("resp_2", user=CANARY), LEASE),
    "check": lambda store: store.check(),
    "ask": lambda store: store.approvals.ask("t", "resp_1", [PendingApproval("mcpr_1", b"", CANARY)]),
    "load": lambda store: store.approvals.load("t", [CANARY]),
    "answer": lambda store: store.approvals.answer("t", [ApprovalAnswer(CANARY, CANARY)]),
    "create": lambda store: store.conversations.create("t", Conversation(CANARY, 0, {"said": CANARY}), ITEMS),
    "load_conversation": lambda store: store.conversations.load("t", CANARY),
    "update": lambda store: store.conversations.update("t", CANARY, {"said": CANARY}),
    "delete": lambda store: store.conversations.delete("t", CANARY),
    "add_items": lambda store: store.conversations.add_items("t", CANARY, ITEMS),
    "list_items": lambda store: store.conversations.list_items("t", CANARY, Page(after=CANARY)),
    "load_item": lambda store: store.conversations.load_item("t", CANARY, CANARY),
    "remove_item": lambda store: store.conversations.remove_item("t", CANARY, CANARY),
    "load_items_of_conversations": lambda store: store.conversations.load_items("t", [CANARY]),
    "load_history": lambda store: store.conversations.load_history("t", CANARY),
    "load_history_of": lambda store: store.conversations.load_history_of("t", CANARY),
    "lease": lambda store: store.conversations.lease("t", CANARY, CANARY, 1),
    "renew": lambda store: store.conversations.renew("t", LEASE, 1),
    "release": lambda store: store.conversations.release("t", LEASE),
    "append": lambda store: store.conversations.append("t", LEASE, ITEMS),
}
