"""The items of a conversation: added, listed, read, removed.

`include` is checked, and adds nothing: items are shown whole. Source: API reference, "Conversation items".
"""

from __future__ import annotations

from http import HTTPStatus

from attache_core.errors import ClientError
from attache_core.storage.conversations import conversation_not_found
from attache_core.turn.conversation_items import items_to_add
from attache_core.types.conversation_requests import parse_new_items
from attache_core.types.item_resource import item_resource
from attache_core.types.paging import ItemPage, list_object, parse_page
from attache_core.types.retrieve import check_retrieve_query
from attache_core.types.violation import quoted
from attache_filters.builtin.resources.conversations import conversation_id, find, shown
from attache_filters.builtin.resources.endpoint import Call
from attache_filters.sdk.http import HttpResponse


async def add(call: Call) -> HttpResponse:
    """The items that were added, as they are from now on."""
    check_retrieve_query(call.query)
    name = conversation_id(call)
    items = await items_to_add(call.tenant, parse_new_items(call.body, call.extensions), call.store)
    if not await call.store.conversations.add_items(call.tenant, name, items):
        raise conversation_not_found(name)
    return HttpResponse.of_json(HTTPStatus.OK, list_object(ItemPage(items, has_more=False)))


async def list_page(call: Call) -> HttpResponse:
    """A page of the conversation's items."""
    page = parse_page(call.query)
    name = conversation_id(call)
    items = await call.store.conversations.list_items(call.tenant, name, page)
    if items is None:
        raise conversation_not_found(name)
    return HttpResponse.of_json(HTTPStatus.OK, list_object(items))


async def get(call: Call) -> HttpResponse:
    """One item."""
    check_retrieve_query(call.query)
    name, item_id = conversation_id(call), call.ids[1]
    item = await call.store.conversations.load_item(call.tenant, name, item_id)
    if item is None:
        raise await _not_found(call)
    return HttpResponse.of_json(HTTPStatus.OK, item_resource(item))


async def remove(call: Call) -> HttpResponse:
    """Take an item out of the conversation, which is what is answered."""
    name, item_id = conversation_id(call), call.ids[1]
    if not await call.store.conversations.remove_item(call.tenant, name, item_id):
        raise await _not_found(call)
    return shown(await find(call))


async def _not_found(call: Call) -> ClientError:
    """404 for the conversation, or else for the item."""
    await find(call)
    message = f"Item with id {quoted(call.ids[1])} not found in this conversation."
    return ClientError(message, http_status=HTTPStatus.NOT_FOUND)
