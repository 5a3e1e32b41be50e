"""The state of conversations: what the turn may ask of a store.

`engine.open_store` opens one and `migrate.migrate` makes its tables; they are not named here, because whoever imports
them imports a database toolkit.
"""

from attache_core.storage.conversations import Conversation, Conversations, Lease
from attache_core.storage.limits import StoreLimits
from attache_core.storage.store import Store, StoredTurn

__all__ = ["Conversation", "Conversations", "Lease", "Store", "StoredTurn", "StoreLimits"]
