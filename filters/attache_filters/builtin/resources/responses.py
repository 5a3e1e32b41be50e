"""Stored responses: read, deleted, and what they were asked.

Source: API reference, "Get a model response", "Delete a model response", "List input items", "Cancel a response".
"""

from __future__ import annotations

from http import HTTPStatus

from attache_core.errors import ClientError
from attache_core.types.paging import list_object, page_of, parse_page
from attache_core.types.retrieve import check_retrieve_query
from attache_filters.builtin.resources.endpoint import Call, require_id
from attache_filters.sdk.http import HttpResponse


async def get(call: Call) -> HttpResponse:
    """The response as it was sent."""
    check_retrieve_query(call.query)
    response_id = _response_id(call)
    response = await call.store.load_response(call.tenant, response_id)
    if response is None:
        raise _not_found(response_id)
    return HttpResponse.of_json(HTTPStatus.OK, response)


async def delete(call: Call) -> HttpResponse:
    """Remove the response and what it was asked."""
    response_id = _response_id(call)
    if not await call.store.delete_turn(call.tenant, response_id):
        raise _not_found(response_id)
    return HttpResponse.of_json(HTTPStatus.OK, {"id": response_id, "object": "response", "deleted": True})


async def cancel(call: Call) -> HttpResponse:
    """Refused: what is stored has ended, as there are no background responses."""
    response_id = _response_id(call)
    if await call.store.load_response(call.tenant, response_id) is None:
        raise _not_found(response_id)
    raise ClientError(
        "Only a response that was created with 'background' set to true can be cancelled, and this gateway does not "
        "support 'background' yet. To cancel a response that is being created, close its connection."
    )


async def compact(call: Call) -> HttpResponse:
    """Refused: where the gateway file has keys for checkpoints, the path leads elsewhere."""
    raise ClientError(
        "This gateway is not set up for compaction: its gateway file has no section 'compaction'.",
        code="compaction_not_configured",
    )


async def list_input_items(call: Call) -> HttpResponse:
    """A page of the items that the client sent in that turn."""
    page = parse_page(call.query)
    response_id = _response_id(call)
    turn = await call.store.load_turn(call.tenant, response_id)
    if turn is None:
        raise _not_found(response_id)
    return HttpResponse.of_json(HTTPStatus.OK, list_object(page_of(turn.input, page)))


def _response_id(call: Call) -> str:
    return require_id(call.ids[0], "resp", "response_id")


def _not_found(response_id: str) -> ClientError:
    return ClientError(f"Response with id '{response_id}' not found.", http_status=HTTPStatus.NOT_FOUND)
