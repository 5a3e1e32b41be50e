"""How much one turn may have of its gateway-executed tools: calls, the same call again, and bytes of their results.

A call over the budget is not run; the model is told so, and the turn goes on. The API's `max_tool_calls` is such a
budget too (API reference, "max_tool_calls").
"""

from __future__ import annotations

import json
from collections import Counter
from contextlib import suppress
from hashlib import sha256

from attache_core import json_codec
from attache_core.events.item_assembly import ByteBudget
from attache_core.tools.arguments import decode_arguments
from attache_core.tools.call_errors import INTERNAL_ERROR, protocol_error
from attache_core.tools.gateway_tool import CallResult


class CallBudget:
    """The budget of one turn; it only ever shrinks."""

    def __init__(
        self, *, max_calls: int, max_identical_calls: int, max_output_bytes: int, retained: ByteBudget
    ) -> None:
        """`retained` is what may be kept of the whole response; results are kept in it."""
        self._calls_left = max_calls
        self._max_identical = max_identical_calls
        self._made: Counter[str] = Counter()
        self._bytes_left = max_output_bytes
        self._retained = retained

    def refusal(self, name: str, arguments: str) -> CallResult | None:
        """Count a call of the tool that the model knows by `name`: what it gets instead of a result, if it may not run.

        Calls that cannot run because of their arguments count as well.
        """
        if self._calls_left <= 0:
            return _refused("No more tool calls are allowed in this response: answer with what is known.")
        self._calls_left -= 1
        call = _fingerprint(name, arguments)
        self._made[call] += 1
        if self._made[call] > self._max_identical:
            return _refused(
                f"This call was made {self._max_identical} times in this response, with the same arguments: "
                "it is not run again. Use the results that there are, or call with other arguments."
            )
        return None

    def charge(self, result: CallResult) -> CallResult:
        """The result to keep: `result`, or an error where it would be too much.

        Raises:
            UpstreamError: the response has become larger than may be kept of it.
        """
        size = len(json_codec.encode([result.output, result.error]))
        if size > self._bytes_left:
            return _refused("The results of this response's tool calls are too large together: this one is left out.")
        self._bytes_left -= size
        self._retained.spend(size)
        return result


def _fingerprint(name: str, arguments: str) -> str:
    """The same for two calls that differ in nothing but white space and the order of fields."""
    with suppress(ValueError):
        arguments = json.dumps(decode_arguments(arguments or "{}"), sort_keys=True)
    return sha256(f"{name} {arguments}".encode(errors="surrogatepass")).hexdigest()


def _refused(message: str) -> CallResult:
    return CallResult(None, protocol_error(INTERNAL_ERROR, message))
