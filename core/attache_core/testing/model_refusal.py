"""Why a model server refuses a request."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request is answered 400, and the path of the field at fault."""

    message: str
    param: str
