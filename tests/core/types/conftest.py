"""What the tests of request shapes share: the answer that a body gets, as a whole value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from attache_core import json_codec
from attache_core.errors import ClientError, error_object
from attache_core.types.request import validate_create

Answer = Callable[..., dict[str, Any] | None]


@pytest.fixture
def answer() -> Answer:
    """Validate `{"model": …, "input": …}` with some fields replaced (`...` drops one): the error, or None."""

    def validate(**fields: Any) -> dict[str, Any] | None:
        body = {"model": "m", "input": "Hi", **fields}
        body = {name: value for name, value in body.items() if value is not ...}
        before = json_codec.encode(body)
        try:
            validate_create(body)
        except ClientError as error:
            return {"status": error.http_status, **error_object(error)}
        finally:
            assert json_codec.encode(body) == before
        return None

    return validate
