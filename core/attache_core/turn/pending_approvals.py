"""Whether a conversation's approval requests and responses belong together, and which of them this turn must act on.

Every response answers exactly one earlier request, and at the end no request is left unanswered, as the Responses API
checks before it runs a model. What was answered in an earlier turn is history: a stored turn by where it stands, items
that a client sends again by what follows them. Pure; whether a request was ever made is the store's to say.
Source: the wording of OpenAI's own errors for requests without responses, and responses without requests.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

from attache_core.errors import ClientError
from attache_core.json_codec import Json
from attache_core.tools.approval_history import REQUEST, RESPONSE, calls_by_request, request_id

_MAX_LISTED = 10
_ASKED_OR_SAID = frozenset({REQUEST, RESPONSE})


@dataclass(frozen=True, slots=True)
class AnsweredRequest:
    """A request and what the user says to it now."""

    request: Json
    approve: bool

    @property
    def id(self) -> str:
        """The id of the request's item."""
        return str(request_id(self.request))


def check_approvals(items: Sequence[Json]) -> None:
    """Check the whole input of a turn, history first.

    Raises:
        ClientError: 400 with `param` `input`, naming the requests or responses that have no partner.
    """
    unanswered: dict[object, None] = {}
    answered: set[object] = set()
    for item in items:
        kind = item.get("type")
        if kind not in _ASKED_OR_SAID:
            continue
        asked = request_id(item)
        if kind == REQUEST:
            if asked not in answered:
                unanswered[asked] = None
        else:
            if asked in answered:
                raise approval_refused(f"The MCP approval request {asked} was answered before.")
            if asked not in unanswered:
                raise approval_refused(
                    f"The following MCP approval requests have approval responses but weren't passed as input: {asked}"
                )
            del unanswered[asked]
            answered.add(asked)
    if unanswered:
        raise approval_refused(f"The following MCP approval requests do not have an approval: {listed(unanswered)}")


def answered_now(items: Sequence[Json], history_items: int) -> list[AnsweredRequest]:
    """The requests that this turn answers, in their order; `history_items` of the items come from the store.

    Where a client sends a whole conversation again, an approval is history if its call is there, and a denial if the
    model has said something since, or has made a further call that somebody must approve.
    """
    said = [place for place in range(history_items, len(items)) if items[place].get("type") == RESPONSE]
    if not said:
        return []
    places = {
        request_id(item): place for place, item in reversed(list(enumerate(items))) if item.get("type") == REQUEST
    }
    made = calls_by_request(items)
    last_said = max((place for place, item in enumerate(items) if _is_the_models(item)), default=-1)
    answers: dict[int, AnsweredRequest] = {}
    for place in said:
        asked_at = places.get(request_id(items[place]))
        if asked_at is None:
            continue
        answer = AnsweredRequest(items[asked_at], items[place].get("approve") is True)
        is_told = answer.id in made if answer.approve else asked_at >= history_items and place < last_said
        if not is_told:
            answers[asked_at] = answer
    return [answers[place] for place in sorted(answers)]


def listed(request_ids: Iterable[object]) -> str:
    """Ids as a message repeats them, which a client may have sent by the thousands."""
    first = [str(each) for each in islice(request_ids, _MAX_LISTED + 1)]
    return ", ".join([*first[:_MAX_LISTED], *(["..."] if len(first) > _MAX_LISTED else [])])


def approval_refused(message: str) -> ClientError:
    """The error for a request or response that cannot be acted on."""
    return ClientError(message, param="input")


def _is_the_models(item: Json) -> bool:
    kind = str(item.get("type"))
    return item.get("role") == "assistant" or kind in ("reasoning", REQUEST) or kind.endswith("_call")
