"""A tool type of one's own: `{"type": "acme_lookup", "catalog": …}` lets the model look parts up in a catalog.

The gateway executes it: the client declares it, and gets `acme_lookup_call` items with what was found.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from pydantic import StringConstraints

from attache_core.events.model_events import ItemAdded, ItemDone, ItemEvent, ModelEvent
from attache_core.json_codec import Json
from attache_core.tools.call_errors import execution_error
from attache_core.tools.function_items import ToldAs
from attache_core.tools.function_tool import function_tool
from attache_core.tools.gateway_tool import CallMade, CallResult, GatewayTool
from attache_core.tools.outbound.secret import ApiKey
from attache_core.tools.tool_type import Offer, OfferedTool, ToolSettings, ToolType
from attache_core.types.shape import Shape

__all__ = ["AcmeLookup"]

CATALOGS: dict[str, dict[str, str]] = {
    "bolts": {"M4": "0.08 EUR, in stock", "M6": "0.12 EUR, three weeks"},
    "gears": {"Z20": "4.10 EUR, in stock"},
}
"""Stands for the company's own service."""


class LookupSettings(ToolSettings):
    """What an operator sets, in the section `tools.acme_lookup` of the gateway file."""

    currency: Literal["EUR", "USD"] = "EUR"
    """What prices are told in."""

    api_key: ApiKey | None = None
    """The key for the company's service. Shown nowhere; `api_key.reveal()` is for the connection."""


class Declaration(Shape):
    """What a client declares."""

    catalog: Annotated[str, StringConstraints(pattern="^[a-z]+$", max_length=32)]


@dataclass(frozen=True, slots=True)
class Lookup(GatewayTool):
    """Looks up one part."""

    catalog: str
    currency: str = "EUR"

    async def call(self, arguments: Json) -> CallResult:
        """The entry of a part; that there is none is an error that the model is told."""
        found = CATALOGS.get(self.catalog, {}).get(arguments["part"])
        if found is None:
            text = f"The catalog {self.catalog} has no such part."
            return CallResult(None, execution_error([{"type": "text", "text": text}]))
        return CallResult(found.replace("EUR", self.currency))

    def begun(self, call: CallMade) -> list[ModelEvent]:
        """The item in progress."""
        return [
            ItemAdded(call.key, self._item(call, "in_progress")),
            ItemEvent(call.key, "acme.lookup_call.looking_up"),
        ]

    def ended(self, call: CallMade, result: CallResult) -> list[ModelEvent]:
        """The item with what was found."""
        status = "completed" if result.error is None else "failed"
        return [ItemDone(call.key, {**self._item(call, status), "found": result.model_text})]

    def _item(self, call: CallMade, status: str) -> Json:
        said = {"arguments": call.arguments, "catalog": self.catalog, "found": None}
        return {"type": "acme_lookup_call", "status": status, **said}


class AcmeLookup(ToolType):
    """Parts in the company's catalogs."""

    shapes: ClassVar = {"acme_lookup": Declaration}
    tellers: ClassVar = {"acme_lookup_call": ToldAs("acme_lookup", asked=("arguments",), answered=("found",))}
    settings_type = LookupSettings

    def __init__(self, settings: LookupSettings | None = None) -> None:
        super().__init__(settings)
        self._currency = (settings or LookupSettings()).currency

    def public(self, declaration: Json) -> Json:
        """The whole declaration: there is no secret in it."""
        return {"type": "acme_lookup", "catalog": declaration["catalog"]}

    async def offer(self, declaration: Json) -> Offer:
        """One function."""
        parameters = {"type": "object", "properties": {"part": {"type": "string"}}, "required": ["part"]}
        about = f"Price and availability of a part in the catalog {declaration['catalog']}."
        function = function_tool("acme_lookup", about, parameters)
        lookup = Lookup(declaration["catalog"], self._currency)
        return Offer((OfferedTool("acme_lookup", None, "acme_lookup", function, lookup),))
