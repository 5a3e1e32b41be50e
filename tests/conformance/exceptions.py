"""Where the API's own answers are not what the types of the `openai` package say: tables, each line with its reason.

Keys are the package's class names, as they stand in the JSON schemas (`$defs`). Source: the recordings of OpenAI's API
under `tests/cassettes`; `test_recordings.py` sees to it that each line of `OMITTED`, `NEWER`, `NEVER_NULL`
and `ADDED` is still shown by one of them.
"""

from __future__ import annotations

from typing import Final

from attache_core.json_codec import Json

Fields = dict[str, str]

_UNLESS_SET = "omitted unless the request or the model set it"
_NO_CALLER = "only calls made by a program that the model wrote have one"
_EXPERIMENT = "only models that support it have one"

OMITTED: Final[dict[str, Fields]] = {
    "ActionSearch": {
        "queries": "one recording of a search has only `query`",
        "sources": "omitted unless `include` asks for it",
    },
    "CodeInterpreter": {"allowed_callers": _UNLESS_SET},
    "CodeInterpreterContainerCodeInterpreterToolAuto": {
        "file_ids": _UNLESS_SET,
        "memory_limit": _UNLESS_SET,
        "network_policy": _UNLESS_SET,
    },
    "CustomTool": {"allowed_callers": _UNLESS_SET, "async": _UNLESS_SET, "defer_loading": _UNLESS_SET},
    "ErrorObject": {"misalignment": "only blocks for misalignment have one"},
    "FunctionTool": {
        "allowed_callers": _UNLESS_SET,
        "async": _UNLESS_SET,
        "defer_loading": _UNLESS_SET,
        "output_schema": _UNLESS_SET,
    },
    "Mcp": {
        "allowed_callers": _UNLESS_SET,
        "authorization": "a secret is never shown",
        "connector_id": _UNLESS_SET,
        "defer_loading": _UNLESS_SET,
        "tunnel_id": _UNLESS_SET,
    },
    "McpListTools": {"error": "omitted when the list was had"},
    "Response": {
        "access_programs": "a programme of OpenAI's own",
        "conversation": "omitted when the response belongs to none",
        "image": _EXPERIMENT,
        "input_transformations": _EXPERIMENT,
        "prompt": _UNLESS_SET,
        "prompt_cache_diagnostics": _EXPERIMENT,
        "prompt_cache_options": _EXPERIMENT,
    },
    "ResponseCustomToolCall": {"async": _UNLESS_SET, "caller": _NO_CALLER, "namespace": "only tools in one have one"},
    "ResponseError": {
        "misalignment": "only blocks for misalignment have one",
        "param": "the error of a failed response is its code and message",
        "type": "the error of a failed response is its code and message",
    },
    "ResponseErrorEvent": {
        "code": "stands in `error`",
        "message": "stands in `error`",
        "param": "stands in `error`",
    },
    "ResponseFunctionToolCall": {
        "async": _UNLESS_SET,
        "caller": _NO_CALLER,
        "namespace": "only tools in one have one",
    },
    "ResponseFunctionWebSearch": {"action": "a search that has only begun has none yet"},
    "ResponseInputText": {"prompt_cache_breakpoint": _UNLESS_SET},
    "ResponseOutputMessage": {"phase": _EXPERIMENT},
    "ResponseReasoningItem": {
        "content": "omitted when the model keeps its reasoning to itself",
        "encrypted_content": "omitted unless `include` asks for it",
        "status": "omitted when the item is complete",
    },
    "ResponseReasoningSummaryPartDoneEvent": {"status": "omitted when the part is complete"},
    "ResponseToolSearchCall": {"created_by": _NO_CALLER},
    "ToolFunction": {
        "allowed_callers": _UNLESS_SET,
        "async": _UNLESS_SET,
        "defer_loading": _UNLESS_SET,
        "output_schema": _UNLESS_SET,
    },
    "ToolUsageImageGen": {
        "cached_tokens": "omitted when it is unknown",
        "cached_tokens_details": "omitted when it is unknown",
    },
    "WebSearchTool": {"external_web_access": _UNLESS_SET, "filters": _UNLESS_SET},
    "openai__types__shared__reasoning__Reasoning": {
        "generate_summary": "the deprecated name of `summary`",
        "mode": _EXPERIMENT,
    },
}
"""Fields that the package declares and the API leaves out, as a recording shows: they may be absent."""

UNRECORDED: Final[dict[str, Fields]] = {
    "InputTokensDetails": {"cache_write_tokens_details": "newer than the recordings; splits a count that we give as 0"},
    "ResponseCompactionItem": {"created_by": "names one of several who could have made it; here there is one"},
}
"""Fields that may be absent by our own decision: the package declares them, and no recording has them."""

NEWER: Final[dict[str, Fields]] = {
    "InputTokensDetails": {"cache_write_tokens": "since July 2026"},
    "Response": {
        "frequency_penalty": "since January 2026",
        "moderation": "since June 2026",
        "presence_penalty": "since January 2026",
        "tool_usage": "since July 2026",
    },
    "openai__types__shared__reasoning__Reasoning": {"context": "since June 2026"},
}
"""Fields that came to the API after some recordings were made: demanded of an answer now, not of those."""

NEVER_NULL: Final[dict[str, tuple[str, ...]]] = {
    "McpCall": ("status",),
    "Response": (
        "background",
        "metadata",
        "reasoning",
        "service_tier",
        "status",
        "temperature",
        "text",
        "tool_usage",
        "top_logprobs",
        "top_p",
        "truncation",
    ),
    "ResponseCustomToolCall": ("id",),
    "ResponseFunctionToolCall": ("id", "status"),
    "ResponseOutputText": ("logprobs",),
    "ResponseTextConfig": ("format", "verbosity"),
}
"""Fields that the package calls nullable, and every recording has a value for: null is refused."""

_OBFUSCATED = {"obfuscation": {"type": "string"}}

ADDED: Final[dict[str, Json]] = {
    "Response": {
        "store": {"type": "boolean"},
        "frequency_penalty": {"type": "number"},
        "presence_penalty": {"type": "number"},
    },
    "ResponseCustomToolCall": {"status": {"enum": ["in_progress", "completed", "incomplete"]}},
    "ResponseErrorEvent": {"error": {"$ref": "#/$defs/ErrorObject"}},
}
"""Fields that the package does not declare and the API always sends: they are demanded."""

_WITH_BYTES = {"bytes": {"type": "array", "items": {"type": "integer"}}}

OPTIONAL: Final[dict[str, Json]] = {
    "Response": {"billing": {"type": "object"}},
    "ResponseCodeInterpreterCallCodeDeltaEvent": _OBFUSCATED,
    "ResponseCustomToolCallInputDeltaEvent": _OBFUSCATED,
    "ResponseFunctionCallArgumentsDeltaEvent": _OBFUSCATED,
    "ResponseMcpCallArgumentsDeltaEvent": _OBFUSCATED,
    "ResponseReasoningSummaryTextDeltaEvent": _OBFUSCATED,
    "ResponseReasoningTextDeltaEvent": _OBFUSCATED,
    "ResponseRefusalDeltaEvent": _OBFUSCATED,
    "ResponseTextDeltaEvent": _OBFUSCATED,
    "openai__types__responses__response_text_delta_event__Logprob": _WITH_BYTES,
    "openai__types__responses__response_text_delta_event__LogprobTopLogprob": _WITH_BYTES,
    "openai__types__responses__response_text_done_event__Logprob": _WITH_BYTES,
    "openai__types__responses__response_text_done_event__LogprobTopLogprob": _WITH_BYTES,
}
"""Fields that the package does not declare and that may be present: the API sends them at times, or, for the `bytes` of
an event's logprobs, which no recording has, the same logprobs have them in the finished part."""

REPLACED: Final[dict[str, Json]] = {
    "Response": {
        "instructions": {"anyOf": [{"type": ["string", "null"]}, {"type": "array", "items": {"type": "object"}}]}
    },
    "ResponseError": {"code": {"type": "string"}},
    "ResponseItemList": {"first_id": {"type": ["string", "null"]}, "last_id": {"type": ["string", "null"]}},
}
"""Fields that the API fills more freely than the package says: `instructions` shows what the request said, errors have
codes beyond the package's list, such as `context_length_exceeded`, and an empty list has no first item."""
