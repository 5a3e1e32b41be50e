"""Conversations: created, read, given other metadata, deleted.

Source: API reference, "Conversations".
"""

from __future__ import annotations

import time
from http import HTTPStatus

from attache_core.json_codec import Json
from attache_core.storage.conversations import Conversation, conversation_not_found
from attache_core.turn.conversation_items import items_to_add
from attache_core.types.conversation_requests import parse_metadata, parse_new_conversation
from attache_core.types.ids import new_id
from attache_filters.builtin.resources.endpoint import Call, require_id
from attache_filters.sdk.http import HttpResponse


async def create(call: Call) -> HttpResponse:
    """A new conversation, with its first items."""
    metadata, given = parse_new_conversation(call.body, call.extensions)
    items = await items_to_add(call.tenant, given, call.store)
    conversation = Conversation(new_id("conv"), int(time.time()), metadata)
    await call.store.conversations.create(call.tenant, conversation, items)
    return shown(conversation)


async def get(call: Call) -> HttpResponse:
    """The conversation without its items."""
    return shown(await find(call))


async def update(call: Call) -> HttpResponse:
    """The conversation with other metadata."""
    metadata = parse_metadata(call.body)
    name = conversation_id(call)
    conversation = await call.store.conversations.update(call.tenant, name, metadata)
    if conversation is None:
        raise conversation_not_found(name)
    return shown(conversation)


async def delete(call: Call) -> HttpResponse:
    """Remove the conversation and its items; what stored responses have read of it stays with them."""
    name = conversation_id(call)
    if not await call.store.conversations.delete(call.tenant, name):
        raise conversation_not_found(name)
    return HttpResponse.of_json(HTTPStatus.OK, {"id": name, "object": "conversation.deleted", "deleted": True})


async def find(call: Call) -> Conversation:
    """The conversation that the path names. Raises ClientError (404, 400)."""
    name = conversation_id(call)
    conversation = await call.store.conversations.load(call.tenant, name)
    if conversation is None:
        raise conversation_not_found(name)
    return conversation


def conversation_id(call: Call) -> str:
    """The id in the path. Raises ClientError (400): it can be none of a conversation."""
    return require_id(call.ids[0], "conv", "conversation_id")


def shown(conversation: Conversation) -> HttpResponse:
    """The API's conversation object."""
    body: Json = {
        "id": conversation.id,
        "object": "conversation",
        "created_at": conversation.created_at,
        "metadata": conversation.metadata,
    }
    return HttpResponse.of_json(HTTPStatus.OK, body)
