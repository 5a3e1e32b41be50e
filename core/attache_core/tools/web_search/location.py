"""Where the user of a search is. A value."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class UserLocation:
    """Where the user is, approximately; whatever is known of it."""

    country: str | None = None
    region: str | None = None
    city: str | None = None
    timezone: str | None = None


NO_LOCATION = UserLocation()
