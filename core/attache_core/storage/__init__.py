"""The state of conversations: opening a store, bringing its schema up to date, and what the turn may ask of it."""

from attache_core.storage.engine import open_store
from attache_core.storage.limits import StoreLimits
from attache_core.storage.migrate import migrate
from attache_core.storage.store import Store, StoredTurn

__all__ = ["open_store", "migrate", "Store", "StoredTurn", "StoreLimits"]
