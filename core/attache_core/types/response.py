"""The public response object at the moment it begins.

Knows every field of the object and what a request's parameters look like in it; is unaware of output, of usage and of
how the response ends. Invariant: every field is present, null where there is nothing to say, in the order of OpenAI's
streams, and after them those that are newer than the recordings of these. Source: API reference, "The response object".
Left out is `billing`, which states who pays OpenAI.
"""

from __future__ import annotations

from typing import Any

from attache_core.json_codec import Json
from attache_core.types.conversation import conversation_id
from attache_core.types.tools import public_tools


def new_response(body: Json, *, response_id: str, created_at: int) -> Json:
    """The response object of a valid create request: `in_progress`, without output.

    `created_at` is in seconds since the epoch. Values of the request are shown as they were sent, secrets excepted.
    """
    return {
        "id": response_id,
        "object": "response",
        "created_at": created_at,
        "status": "in_progress",
        "background": False,
        "completed_at": None,
        "error": None,
        "frequency_penalty": _given(body, "frequency_penalty", 0.0),
        "incomplete_details": None,
        "instructions": body.get("instructions"),
        "max_output_tokens": body.get("max_output_tokens"),
        "max_tool_calls": body.get("max_tool_calls"),
        "model": body["model"],
        "moderation": None,
        "output": [],
        "parallel_tool_calls": _given(body, "parallel_tool_calls", True),
        "presence_penalty": _given(body, "presence_penalty", 0.0),
        "previous_response_id": body.get("previous_response_id"),
        "prompt_cache_key": body.get("prompt_cache_key"),
        "prompt_cache_retention": body.get("prompt_cache_retention"),
        "reasoning": {"context": None, "effort": None, "summary": None, **_given(body, "reasoning", {})},
        "safety_identifier": body.get("safety_identifier"),
        "service_tier": _given(body, "service_tier", "auto"),
        "store": body.get("store") is not False,
        "temperature": _given(body, "temperature", 1.0),
        "text": _text(_given(body, "text", {})),
        "tool_choice": _given(body, "tool_choice", "auto"),
        "tool_usage": _no_hosted_tools_used(),
        "tools": public_tools(body.get("tools")),
        "top_logprobs": _given(body, "top_logprobs", 0),
        "top_p": _given(body, "top_p", 1.0),
        "truncation": _given(body, "truncation", "disabled"),
        "usage": None,
        "user": body.get("user"),
        "metadata": _given(body, "metadata", {}),
        "access_programs": _access_programs(_given(body, "access_programs", {})),
        "conversation": _conversation(body),
        "image": _image(_given(body, "image", {})),
        "input_transformations": None,
        "prompt": body.get("prompt"),
        "prompt_cache_diagnostics": None,
        "prompt_cache_options": _prompt_cache_options(body.get("prompt_cache_options")),
    }


def _given(body: Json, name: str, default: Any) -> Any:  # noqa: ANN401 - JSON values
    """A parameter's value; null means that it was not given."""
    value = body.get(name)
    return default if value is None else value


def _text(text: Json) -> Json:
    shown = _given(text, "format", {"type": "text"})
    if shown["type"] == "json_schema":
        shown = {
            "type": "json_schema",
            "description": None,
            "name": shown["name"],
            "schema": {},
            "strict": False,
            **shown,
        }
    return {**text, "format": shown, "verbosity": _given(text, "verbosity", "medium")}


def _conversation(body: Json) -> Json | None:
    given = conversation_id(body)
    return None if given is None else {"id": given}


def _access_programs(programs: Json) -> Json | None:
    return None if programs.get("cyber") is None else programs


def _image(image: Json) -> Json | None:
    """A response says what was done; what `auto` came to is not known here."""
    asked = image.get("context_compression")
    return {"context_compression": asked} if asked in ("enabled", "disabled") else None


def _prompt_cache_options(options: Json | None) -> Json | None:
    if not options:
        return None
    mode, ttl = _given(options, "mode", "implicit"), _given(options, "ttl", "30m")
    return {"mode": mode, "ttl": ttl, "comparison_response_id": None}


def _no_hosted_tools_used() -> Json:
    image_tokens = {"image_tokens": 0, "text_tokens": 0}
    return {
        "image_gen": {
            "input_tokens": 0,
            "input_tokens_details": image_tokens,
            "output_tokens": 0,
            "output_tokens_details": dict(image_tokens),
            "total_tokens": 0,
        },
        "web_search": {"num_requests": 0},
    }
