"""A turn reduced to what a stateless inference server may see of it.

Knows which parameters the gateway answers itself; of the items of `input`, `model_items` knows what is told. Everything
else goes on as the client sent it: parameters of the API, a server's own (`seed`, `top_k`, `chat_template_kwargs`), new
ones. Invariant: the one thing that is added is `store: false`, because servers keep responses unless told not to.
"""

from __future__ import annotations

from attache_core.errors import ClientError
from attache_core.json_codec import Json
from attache_core.turn.model_items import model_items
from attache_core.turn.pending_approvals import answered_now
from attache_core.types.parameters import CreateRequest
from attache_core.types.turn import TurnRequest, input_items

STATE_FIELDS = ("previous_response_id", "conversation", "background", "max_tool_calls")
"""What a stateless server must not be asked for: the gateway has answered it. What the gateway refuses (`prompt`,
`context_management`) is not among them: where nothing above refused it, the server is to say what it makes of it."""

SERVER_INCLUDES = ("message.output_text.logprobs", "reasoning.encrypted_content")
"""What of `include` is about the model's own output. The rest is about hosted tools, and servers refuse some of it."""


def model_request(turn: TurnRequest) -> TurnRequest:
    """The turn as a stateless server may see it: nothing of ours in it, and nothing to be kept there.

    A parameter of the API that is null is not sent: in the API that is the same as absent, for many servers it is not.

    Raises:
        ClientError: it continues what is stored, and no filter above has loaded the history; or it declares a tool
            that no filter above runs, whose credentials are none of the server's business, or approves a call of one;
            or an item of its input can be told to no server.
    """
    _refuse_unanswered(turn)
    body = {name: value for name, value in turn.body.items() if _is_sent(name, value)}
    _reduce(body, "include", [value for value in body.get("include", ()) if value in SERVER_INCLUDES])
    _reduce(body, "stream_options", _without_padding(body.get("stream_options", {})))
    if isinstance(body.get("input"), list):
        body["input"] = model_items(body["input"])
    body["store"] = False
    return turn.with_whole_body(body)


def _refuse_unanswered(turn: TurnRequest) -> None:
    for name in ("previous_response_id", "conversation"):
        if turn.body.get(name) is not None and turn.facts.history_items is None:
            raise ClientError(
                f"This endpoint keeps no state: send the whole conversation as 'input' instead of '{name}'.",
                param=name,
                code="unsupported_parameter",
            )
    for index, tool in enumerate(turn.body.get("tools") or ()):
        if tool.get("type") == "mcp":
            raise ClientError(
                "This endpoint runs no MCP tools.", param=f"tools[{index}].type", code="unsupported_value"
            )
    if answered_now(input_items(turn.body), turn.facts.history_items or 0):
        message = "This endpoint runs no MCP tools, so there is nothing to approve."
        raise ClientError(message, param="input", code="unsupported_value")


def _is_sent(name: str, value: object) -> bool:
    return name not in STATE_FIELDS and not (value is None and name in CreateRequest.model_fields)


def _reduce(body: Json, name: str, left: object) -> None:
    """Keep of a parameter that was given only what is left of it."""
    if name in body and left:
        body[name] = left
    else:
        body.pop(name, None)


def _without_padding(options: Json) -> Json:
    """Stream options without padding, which the gateway adds itself where the client wants it."""
    return {name: value for name, value in options.items() if name != "include_obfuscation"}
