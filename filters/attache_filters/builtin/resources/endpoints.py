"""Every endpoint of a resource. A path that is not here is 404, and a method that its path has not is 405."""

from __future__ import annotations

from attache_filters.builtin.resources import responses
from attache_filters.builtin.resources.endpoint import Endpoint, endpoint

ENDPOINTS: tuple[Endpoint, ...] = (
    endpoint("GET", "/v1/responses/{}", responses.get),
    endpoint("DELETE", "/v1/responses/{}", responses.delete),
    endpoint("POST", "/v1/responses/{}/cancel", responses.cancel),
    endpoint("GET", "/v1/responses/{}/input_items", responses.list_input_items),
)
