"""The end of a running gateway that nobody asked for."""

from __future__ import annotations


class GatewayFailed(Exception):  # noqa: N818 - it reports what happened, as ProcessLookupError does not
    """A part that the gateway cannot do without is gone, or never came up. The message says which, for the operator."""


def sole_cause(error: BaseException) -> BaseException:
    """The one exception inside nested exception groups, or the group itself when there are several.

    Task groups wrap what ends them; whoever runs a gateway wants the reason, not the layers that it came through.
    """
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error
