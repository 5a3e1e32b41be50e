"""What a type of tool is: the interface that every one has, the API's own and those of other packages alike.

A type reads its declarations and says which functions the model gets for them, because functions are all that an
inference server understands. For each function it says who executes its calls: the client, who gets them in the public
shape of the type (`ClientTool`), or the gateway (`GatewayTool`). And it says how the model is told, in a later round or
turn, of the items that its calls left behind. Unaware of requests, rounds and names that the model knows: those are
`registry`'s.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import ClassVar, Protocol

from pydantic import BaseModel, ConfigDict

from attache_core.events.model_events import ModelEvent
from attache_core.json_codec import Json
from attache_core.tools.gateway_tool import GatewayTool
from attache_core.types.shape import Shape
from attache_core.types.tools import public_tools


class ToolSettings(BaseModel):
    """Base class of a tool type's settings. Unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class ClientCall(Protocol):
    """The way of one call from the function that the model called to the public item."""

    def feed(self, said: ModelEvent) -> list[ModelEvent]:
        """Take the events of the `function_call` in, in order, and give out those of the public item.

        Both begin with an `ItemAdded` and end with an `ItemDone` of the same key; those in between may be left out.
        """
        ...


@dataclass(frozen=True, slots=True)
class ClientTool:
    """Says that the client executes the calls.

    Attributes:
        new_call: makes what translates one call; None where the public item is the function call as it is.
    """

    new_call: Callable[[], ClientCall] | None = None


class Naming(Enum):
    """How far the model knows a tool by its own name."""

    FIXED = "fixed"
    """Always: the client chose the name for the model."""
    FREE = "free"
    """Where that is a valid name and no other tool's; else with its owner's name before it."""
    LABELLED = "labelled"
    """Never: always with its owner's name before it."""


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """One function for the model.

    Attributes:
        type: the tool's type, as a `tool_choice` names it.
        owner: what the tool belongs to, a server's label or a namespace; None where it stands alone.
        name: its own name; unique among those of its type and owner.
        function: the function as the model is told of it; its `name` is replaced.
        binding: who executes its calls.
        deferred: whether the model is told of it only once a tool search has found it.
    """

    type: str
    owner: str | None
    name: str
    function: Json
    binding: ClientTool | GatewayTool
    naming: Naming = Naming.FREE
    deferred: bool = False


def described(tools: Sequence[OfferedTool], owner: str, about: str | None) -> list[OfferedTool]:
    """The same tools; the first that the model is told of at once, else the first, says what is told of their owner."""
    told = next((index for index, tool in enumerate(tools) if not tool.deferred), 0)
    return [_describing(tool, owner, about) if about and n == told else tool for n, tool in enumerate(tools)]


def _describing(tool: OfferedTool, owner: str, about: str) -> OfferedTool:
    own = tool.function.get("description")
    description = f"{owner}: {about}" + (f"\n\n{own}" if own else "")
    return replace(tool, function={**tool.function, "description": description})


class Announcement(Protocol):
    """Something that the client is shown of a declaration before the model says anything, such as a list of tools."""

    def events(self, history: Sequence[Json]) -> list[ModelEvent]:
        """The whole life of its items; none where the items of `history` show the same already."""
        ...


@dataclass(frozen=True, slots=True)
class Offer:
    """What one declaration comes to, in one turn.

    Attributes:
        release: gives back what the calls of the turn acquired; called once, when none of them runs any more.
    """

    tools: tuple[OfferedTool, ...] = ()
    announcement: Announcement | None = None
    release: Callable[[], Awaitable[None]] | None = None


class ModelNames(Protocol):
    """The names under which the model knows tools, those of the past included."""

    def name_of(self, tool_type: str, owner: str | None, name: str, naming: Naming = Naming.FREE) -> str:
        """The name of a tool of this request; of one that is not declared, a name that no tool of it has.

        `naming` is how tools of its kind are named, so that one has the same name whether it is declared or not.
        """
        ...

    def has(self, tool_type: str, owner: str | None, name: str) -> bool:
        """Whether it is a tool of this request."""
        ...


Teller = Callable[[Json, int, ModelNames], list[Json]]
"""Says an item as function calls and outputs; it gets the item, its place in the input, and the names."""


class ToolType(ABC):
    """One type of tool; an object of it lives as long as the worker process.

    Attributes:
        shapes: the `type` of the declarations that it reads, and what each must look like.
        tellers: the types of the items that its calls leave behind, and how the model is told of each.
        settings_type: the settings that it takes.
    """

    shapes: ClassVar[Mapping[str, type[Shape]]]
    tellers: ClassVar[Mapping[str, Teller]] = {}
    settings_type: ClassVar[type[ToolSettings]] = ToolSettings

    def __init__(self, settings: ToolSettings | None = None) -> None:
        self.settings = settings or self.settings_type()

    async def open(self) -> None:  # noqa: B027 - most have nothing to open
        """Acquire what it needs for the life of the process. Called once, before the first turn."""

    async def close(self) -> None:  # noqa: B027 - the same
        """Release it. Called once, after the last turn."""

    def public(self, declaration: Json) -> Json:
        """What a response shows of a declaration: no secret. Of a type that is not the API's, its name alone."""
        return public_tools([declaration])[0]

    def check_together(self, declarations: Sequence[Json]) -> None:  # noqa: B027 - most have nothing to check
        """Look at all declarations of a request at once, each of which has its shape.

        Raises:
            ClientError: they cannot be used together.
        """

    def needs_discovery(self, declaration: Json) -> bool:
        """Whether `offer` would have to ask somebody, and so might take a while."""
        del declaration
        return False

    def may_need_approval(self, declaration: Json) -> bool:
        """Whether a user might have to approve calls of what it declares, in a turn that continues this one."""
        del declaration
        return False

    @abstractmethod
    async def offer(self, declaration: Json) -> Offer:
        """Say what the model gets for a declaration. A server that cannot be asked is an announcement, not an error."""
