"""Approvals of a turn: asked for with a durable record, redeemed once before the call runs.

Knows what is written and compared; is unaware of rounds, items' lives and databases. Invariants: no request is final
to a client unless it can be answered later; no call that needs approval runs before its record is consumed, and what is
approved is what was asked: the same tool, arguments, server and credentials, for the same tenant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attache_core.errors import ClientError
from attache_core.json_codec import Json
from attache_core.storage.approvals import ApprovalAnswer, ApprovalStore, PendingApproval
from attache_core.tools.approval_fingerprint import new_salt
from attache_core.tools.gateway_tool import GatewayTool
from attache_core.tools.registry import ToolRegistry
from attache_core.tools.tool_types import ToolTypes
from attache_core.turn.approval_call import ApprovalCall, fingerprints
from attache_core.turn.pending_approvals import AnsweredRequest, approval_refused, listed
from attache_core.turn.round_view import HeldCall
from attache_core.types.turn import TurnRequest
from attache_core.types.violation import quoted


def refuse_unanswerable(tools: Sequence[Json], types: ToolTypes, turn: TurnRequest) -> None:
    """Look whether an approval could be given to what this turn declares: nothing continues what is not stored.

    Raises:
        ClientError: 400, it could not.
    """
    for index, tool in enumerate(tools):
        if not turn.facts.stored and types.may_need_approval(tool):
            param = f"tools[{index}].require_approval"
            why, way_out = ("this endpoint stores no responses", "set")
            if not turn.store:
                why, way_out = ("this response is not stored", "set 'store' to true, or")
            message = f"Approval of tool calls cannot be given later, because {why}: {way_out} '{param}' to 'never'."
            raise ClientError(message, param=param, code="unsupported_value")


async def ask(calls: Sequence[ApprovalCall], turn: TurnRequest, store: ApprovalStore | None) -> None:
    """Write down what a round asks for; `refuse_unanswerable` has seen to it that there is a store.

    Raises:
        StoreError: it could not be written, and nobody may be told that an approval is waited for.
    """
    if not calls:
        return
    assert store is not None
    assert turn.facts.response_id is not None
    salt = new_salt()
    prints = await fingerprints([(call, salt) for call in calls])
    asked = [PendingApproval(call.request_id, salt, print_) for call, print_ in zip(calls, prints, strict=True)]
    await store.ask(turn.facts.tenant, turn.facts.response_id, asked)


async def redeem(
    answers: Sequence[AnsweredRequest], registry: ToolRegistry, turn: TurnRequest, store: ApprovalStore | None
) -> list[HeldCall]:
    """Take the answers of this turn, all or none; the calls that are to run now, in the order of their requests.

    Raises:
        ClientError: 400, a request was never made here, was answered before, or is not for this call; or its tool is no
            longer there.
        StoreError: the store is out of reach.
    """
    if not answers:
        return []
    known = {} if store is None else await store.load(turn.facts.tenant, [answer.id for answer in answers])
    for answer in answers:
        _check_pending(answer.id, known)
    calls = [_call(answer, registry) for answer in answers if answer.approve]
    prints = await fingerprints([(call, known[call.request_id].salt) for call in calls])
    given = {call.request_id: print_ for call, print_ in zip(calls, prints, strict=True)}
    for request_id, print_ in given.items():
        if print_ != known[request_id].fingerprint:
            raise approval_refused(
                f"The MCP approval request {quoted(request_id)} is for another call: the server's URL and credentials, "
                "the tool and the arguments must be those that the approval was asked for."
            )
    assert store is not None
    said = [ApprovalAnswer(answer.id, given.get(answer.id)) for answer in answers]
    if not await store.answer(turn.facts.tenant, said):
        names = listed(answer.id for answer in answers)
        raise approval_refused(
            "The following MCP approval requests cannot be answered, because one was answered just now, or the "
            f"response that asked is not stored: {names}"
        )
    return [_held(call, registry) for call in calls]


def _held(call: ApprovalCall, registry: ToolRegistry) -> HeldCall:
    name = registry.name_of("mcp", call.tool.owner, call.tool.name)
    key, request_id = f"approved.{call.request_id}", call.request_id
    return HeldCall(key, name, call.tool, call.arguments, approval_request_id=request_id)


def _check_pending(request_id: str, known: Mapping[str, PendingApproval]) -> None:
    if request_id not in known:
        raise approval_refused(f"MCP approval request with id {quoted(request_id)} not found.")
    if known[request_id].answered:
        raise approval_refused(
            f"The MCP approval request {quoted(request_id)} was answered before, and an answer is taken once. Continue "
            "from before the response that asked, or remove the request's item from the conversation."
        )


def _call(answer: AnsweredRequest, registry: ToolRegistry) -> ApprovalCall:
    owner, name = str(answer.request.get("server_label")), str(answer.request.get("name"))
    tool = registry.tools.get(registry.name_of("mcp", owner, name)) if registry.has("mcp", owner, name) else None
    if tool is None or not isinstance(tool.binding, GatewayTool):
        raise approval_refused(
            f"The MCP approval request {quoted(answer.id)} cannot be approved: the server {quoted(owner)} must be "
            f"declared in 'tools' as before, and must offer its tool {quoted(name)} now."
        )
    return ApprovalCall(answer.id, tool, str(answer.request.get("arguments") or ""))
