"""The query of `GET /v1/responses/{id}`: from text to values, and whether it can be answered.

Knows the parameters of the API; is unaware of stores and of HTTP. A parameter that is not known is not looked at, as in
OpenAI's API. Invariant: what is asked for beside the response is checked, and changes nothing: a stored response holds
all that `include` could add. Source: API reference, "Get a model response".
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import PlainValidator

from attache_core.errors import ClientError
from attache_core.types.parameters import check_include
from attache_core.types.query import query_values
from attache_core.types.shape import Shape, check


class _RetrieveQuery(Shape):
    include: Annotated[Any, PlainValidator(check_include)] | None = None
    include_obfuscation: bool | None = None
    starting_after: int | None = None
    stream: bool | None = None


def check_retrieve_query(query: str) -> None:
    """Look at what follows the question mark; arrays are `include=a&include=b`, `include[]=a` or `include[0]=a`.

    Raises:
        ClientError: 400 with `param` and `code` for the first thing that is wrong, or when a stream is asked for.
    """
    asked = query_values(query)
    check(_RetrieveQuery, asked)
    if asked.get("stream"):
        raise ClientError("Streaming a stored response is not supported yet: omit 'stream'.", param="stream")
