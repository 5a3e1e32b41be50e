"""The outermost shape of JSON-RPC 2.0 messages, as far as it says what a message is. Pure."""

from __future__ import annotations

from attache_core import json_codec
from attache_core.json_codec import Json


def message_of(body: bytes) -> Json | None:
    """A JSON-RPC message, or None when it is none."""
    try:
        message = json_codec.decode_exactly(body)
    except ValueError:
        return None
    return message if isinstance(message, dict) and message.get("jsonrpc") == "2.0" else None


def is_answer(message: Json, request_id: object) -> bool:
    """Whether it answers a request, well or badly.

    A result has the request's id, which some servers write as a text, or none; an error any: a server may have failed
    to read the request, and those of the SDK's first version then make one up.
    """
    if "method" in message:
        return False
    if "error" in message:
        return True
    return "result" in message and (message.get("id") is None or str(message["id"]) == str(request_id))


def is_refusal(message: Json) -> bool:
    """Whether it has an error that is one."""
    error = message.get("error")
    return isinstance(error, dict) and type(error.get("code")) is int and isinstance(error.get("message"), str)
