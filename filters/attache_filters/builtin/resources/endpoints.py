"""Every endpoint of a resource. A path that is not here is 404, and a method that its path has not is 405."""

from __future__ import annotations

from attache_filters.builtin.resources import conversation_items, conversations, responses
from attache_filters.builtin.resources.endpoint import Endpoint, endpoint

ENDPOINTS: tuple[Endpoint, ...] = (
    endpoint("POST", "/v1/responses/compact", responses.compact),
    endpoint("GET", "/v1/responses/{}", responses.get),
    endpoint("DELETE", "/v1/responses/{}", responses.delete),
    endpoint("POST", "/v1/responses/{}/cancel", responses.cancel),
    endpoint("GET", "/v1/responses/{}/input_items", responses.list_input_items),
    endpoint("POST", "/v1/conversations", conversations.create),
    endpoint("GET", "/v1/conversations/{}", conversations.get),
    endpoint("POST", "/v1/conversations/{}", conversations.update),
    endpoint("DELETE", "/v1/conversations/{}", conversations.delete),
    endpoint("POST", "/v1/conversations/{}/items", conversation_items.add),
    endpoint("GET", "/v1/conversations/{}/items", conversation_items.list_page),
    endpoint("GET", "/v1/conversations/{}/items/{}", conversation_items.get),
    endpoint("DELETE", "/v1/conversations/{}/items/{}", conversation_items.remove),
)
