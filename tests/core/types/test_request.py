"""Create requests: what is refused and in which words, and that nothing is ever changed."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attache_core import json_codec
from attache_core.errors import ClientError, error_body, error_object
from attache_core.json_codec import Json
from attache_core.types.conversation import conversation_id
from attache_core.types.request import MAX_NESTING, parse_create, validate_create

Answer = Callable[..., dict[str, Any] | None]

RECORDED = json.loads((Path(__file__).parent / "data" / "recorded_requests.json").read_text())["requests"]


def refusal(code: str | None, param: str | None, message: str) -> dict[str, Any]:
    """The whole answer to a request that cannot be answered."""
    return {"status": 400, "message": message, "type": "invalid_request_error", "param": param, "code": code}


def wrong_type(param: str, expected: str, got: str) -> dict[str, Any]:
    """The answer to a value of the wrong type."""
    return refusal("invalid_type", param, f"Invalid type for '{param}': expected {expected}, but got {got} instead.")


def wrong_value(param: str, value: str, supported: str) -> dict[str, Any]:
    """The answer to a value that is none of those supported."""
    return refusal("invalid_value", param, f"Invalid value: '{value}'. Supported values are: {supported}.")


def missing(param: str) -> dict[str, Any]:
    """The answer to a field that is not there."""
    return refusal("missing_required_parameter", param, f"Missing required parameter: '{param}'.")


TOOL_TYPES = "'function', 'mcp', 'custom', 'namespace', 'tool_search', 'shell', 'local_shell', and 'apply_patch'"
NOT_JSON = "it is not valid JSON"
NO_OBJECT = "it is JSON, but not an object"
TOO_DEEP = f"it is nested deeper than {MAX_NESTING} levels"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", NOT_JSON),
        (b"{", NOT_JSON),
        (b'{"model": NaN}', NOT_JSON),
        (b'{"temperature": 1e999}', NOT_JSON),
        (b'{"temperature": ' + b"9" * 5000 + b"}", NOT_JSON),
        (b'{"model": "\xff"}', NOT_JSON),
        (b"[" * 100_000, NOT_JSON),
        (b'\xef\xbb\xbf{"model": "m"}', NOT_JSON),
        ('{"model": "m"}'.encode("utf-16"), NOT_JSON),
        (b'{"model": "\xed\xa0\xbd"}', NOT_JSON),
        (b'{"model": "\x00"}', NOT_JSON),
        (b'{"model": "m"} {}', NOT_JSON),
        (b'{"model": 01}', NOT_JSON),
        (b"{'model': 'm'}", NOT_JSON),
        (b'{"seed": 11111111111111111111, "temperature": Infinity}', NOT_JSON),
        (b"null", NO_OBJECT),
        (b"[]", NO_OBJECT),
        (b'"text"', NO_OBJECT),
        (b'{"a": ' + b"[" * MAX_NESTING + b"]" * MAX_NESTING + b"}", TOO_DEEP),
    ],
)
def test_parse_create_with_no_json_object_answers_400(body: bytes, reason: str) -> None:
    with pytest.raises(ClientError) as raised:
        parse_create(body)
    message = f"We could not parse the JSON body of your request: {reason}."
    assert {"status": raised.value.http_status, **error_object(raised.value)} == refusal(None, None, message)


def test_parse_create_with_an_object_returns_it_whole() -> None:
    body: Json = {"model": "m", "input": "\N{GRINNING FACE}", "of_tomorrow": [1.5, None, {"a": []}]}
    assert parse_create(json.dumps(body).encode()) == body


def test_parse_create_with_a_lone_surrogate_keeps_it() -> None:
    assert parse_create(b'{"input": "\\ud83d"}') == {"input": "\ud83d"}


def test_parse_create_with_the_deepest_body_gives_one_that_can_be_written_again() -> None:
    depth = MAX_NESTING - 1
    body = b'{"a":' + b"[" * depth + b"]" * depth + b"}"
    assert json_codec.encode(parse_create(body)) == body


@pytest.mark.parametrize("recorded", RECORDED, ids=lambda recorded: f"{recorded['recording']}#{recorded['turn']}")
def test_recorded_request_is_accepted_unless_a_tool_is_not_supported(recorded: Json, answer: Answer) -> None:
    hosted = [tool["type"] for tool in recorded["body"].get("tools", []) if tool["type"] not in ("function", "mcp")]
    expected = wrong_value("tools[0].type", hosted[0], TOOL_TYPES) if hosted else None
    assert answer(**recorded["body"]) == expected


MODEL_AND_INPUT: list[tuple[Json, dict[str, Any]]] = [
    ({"model": ...}, missing("model")),
    ({"model": ..., "input": ...}, missing("model")),
    ({"model": None}, wrong_type("model", "a string", "null")),
    ({"model": 7}, wrong_type("model", "a string", "an integer")),
    (
        {"model": ""},
        refusal(
            "empty_string",
            "model",
            "Invalid 'model': empty string. Expected a string with minimum length 1, but got an empty string instead.",
        ),
    ),
    ({"input": ...}, missing("input")),
    ({"input": ..., "previous_response_id": "resp_1"}, missing("input")),
    ({"input": None}, wrong_type("input", "one of a string or array of input items", "null")),
    ({"input": {"a": 1}}, wrong_type("input", "one of a string or array of input items", "an object")),
]
TOO_LONG = "Expected a string with maximum length 64, but got a string with length 65 instead."
EMPTY_INPUT = refusal("missing_required_parameter", None, "One of 'input' or 'previous_response_id' must be provided.")

SCALARS: list[tuple[Json, dict[str, Any]]] = [
    ({"temperature": "hot"}, wrong_type("temperature", "a decimal", "a string")),
    ({"temperature": True}, wrong_type("temperature", "a decimal", "a boolean")),
    (
        {"temperature": 2.5},
        refusal(
            "decimal_above_max_value",
            "temperature",
            "Invalid 'temperature': decimal above maximum value. Expected a value <= 2, but got 2.5 instead.",
        ),
    ),
    (
        {"top_p": -1},
        refusal(
            "decimal_below_min_value",
            "top_p",
            "Invalid 'top_p': decimal below minimum value. Expected a value >= 0, but got -1 instead.",
        ),
    ),
    ({"max_output_tokens": "x"}, wrong_type("max_output_tokens", "an integer", "a string")),
    ({"max_output_tokens": 1.0}, wrong_type("max_output_tokens", "an integer", "a decimal")),
    (
        {"max_output_tokens": 0},
        refusal(
            "integer_below_min_value",
            "max_output_tokens",
            "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 1, but got 0 instead.",
        ),
    ),
    (
        {"top_logprobs": 21},
        refusal(
            "integer_above_max_value",
            "top_logprobs",
            "Invalid 'top_logprobs': integer above maximum value. Expected a value <= 20, but got 21 instead.",
        ),
    ),
    ({"stream": "yes"}, wrong_type("stream", "a boolean", "a string")),
    ({"store": 1}, wrong_type("store", "a boolean", "an integer")),
    ({"parallel_tool_calls": []}, wrong_type("parallel_tool_calls", "a boolean", "an array")),
    ({"instructions": {"a": 1}}, wrong_type("instructions", "a string", "an object")),
    *(
        ({name: "x" * 65}, refusal("string_above_max_length", name, f"Invalid '{name}': string too long. {TOO_LONG}"))
        for name in ("prompt_cache_key", "safety_identifier")
    ),
    ({"previous_response_id": 7}, wrong_type("previous_response_id", "a string", "an integer")),
    ({"user": 7}, wrong_type("user", "a string", "an integer")),
    ({"truncation": "bogus"}, wrong_value("truncation", "bogus", "'auto' and 'disabled'")),
    ({"truncation": {"a": 1}}, wrong_type("truncation", "one of 'auto' or 'disabled'", "an object")),
    ({"truncation": "\ud83d"}, wrong_value("truncation", "\ud83d", "'auto' and 'disabled'")),
    ({"truncation": "x" * 1000}, wrong_value("truncation", "x" * 97 + "...", "'auto' and 'disabled'")),
    ({"stream_options": "x"}, wrong_type("stream_options", "an object", "a string")),
    (
        {"stream_options": {"include_obfuscation": 1}},
        wrong_type("stream_options.include_obfuscation", "a boolean", "an integer"),
    ),
    ({"include": "x"}, wrong_type("include", "an array of strings", "a string")),
]

NESTED: list[tuple[Json, dict[str, Any]]] = [
    ({"metadata": "x"}, wrong_type("metadata", "a metadata object", "a string")),
    ({"metadata": {"a": 1}}, wrong_type("metadata.a", "a string", "an integer")),
    (
        {"metadata": {f"k{n}": "v" for n in range(17)}},
        refusal(
            "object_above_max_properties",
            "metadata",
            "Invalid 'metadata': too many properties. "
            "Expected an object with at most 16 properties, but got an object with 17 properties instead.",
        ),
    ),
    (
        {"metadata": {"a": "v" * 513}},
        refusal(
            "string_above_max_length",
            "metadata.a",
            "Invalid 'metadata.a': string too long. "
            "Expected a string with maximum length 512, but got a string with length 513 instead.",
        ),
    ),
    (
        {"metadata": {"k" * 65: "v"}},
        refusal(
            "string_above_max_length",
            "metadata",
            "Invalid 'metadata': property name too long. "
            "Expected a string with maximum length 64, but got a string with length 65 instead.",
        ),
    ),
    ({"text": "x"}, wrong_type("text", "an object", "a string")),
    ({"text": {"verbosity": "x"}}, wrong_value("text.verbosity", "x", "'low', 'medium', and 'high'")),
    ({"text": {"format": {}}}, missing("text.format.type")),
    (
        {"text": {"format": {"type": "xml"}}},
        wrong_value("text.format.type", "xml", "'json_object', 'text', and 'json_schema'"),
    ),
    ({"text": {"format": {"type": "json_schema", "schema": {}}}}, missing("text.format.name")),
    ({"text": {"format": {"type": "json_schema", "name": "n"}}}, missing("text.format.schema")),
    ({"reasoning": "low"}, wrong_type("reasoning", "an object", "a string")),
    (
        {"reasoning": {"effort": "bogus"}},
        wrong_value("reasoning.effort", "bogus", "'none', 'minimal', 'low', 'medium', 'high', 'xhigh', and 'max'"),
    ),
    (
        {"reasoning": {"summary": "bogus"}},
        wrong_value("reasoning.summary", "bogus", "'concise', 'detailed', and 'auto'"),
    ),
    (
        {"include": ["reasoning.encrypted_content", "bogus.thing"]},
        wrong_value(
            "include[1]",
            "bogus.thing",
            "'file_search_call.results', 'web_search_call.results', 'web_search_call.action.sources', "
            "'message.input_image.image_url', 'computer_call_output.output.image_url', "
            "'code_interpreter_call.outputs', 'reasoning.encrypted_content', and 'message.output_text.logprobs'",
        ),
    ),
]

NOT_SUPPORTED: list[tuple[Json, dict[str, Any]]] = [
    (
        {"background": True},
        refusal(
            "unsupported_value",
            "background",
            "Background responses are not supported by this gateway yet: omit 'background' or set it to false.",
        ),
    ),
    ({"background": "yes"}, wrong_type("background", "a boolean", "a string")),
    *(
        (
            {name: value},
            refusal(
                "unsupported_parameter",
                name,
                f"Unsupported parameter: '{name}'. This gateway does not support it yet. {instead}",
            ),
        )
        for name, value, instead in (
            ("prompt", {"id": "pmpt_1"}, "Send the text as 'instructions' and 'input'."),
            ("background_options", {}, "Omit it, as 'background' is not supported either."),
            (
                "moderation",
                {"model": "omni-moderation-latest"},
                "Omit it, or place a filter of your own in the gateway's chain.",
            ),
        )
    ),
    *(
        (
            {"prompt_cache_options": {name: value}},
            refusal(
                "unsupported_parameter",
                f"prompt_cache_options.{name}",
                f"Unsupported parameter: 'prompt_cache_options.{name}'. This gateway does not support it yet. Omit it.",
            ),
        )
        for name, value in (("prewarm", True), ("comparison_response_id", "resp_1"))
    ),
]


def bad_id(param: str, value: str, expected: str) -> dict[str, Any]:
    """The answer to an id that cannot be one of ours."""
    return refusal("invalid_value", param, f"Invalid '{param}': '{value}'. Expected an ID {expected}")


GRAMMAR = "of letters, digits, underscores and dashes only."
EXCLUSIVE = refusal(
    "mutually_exclusive_parameters",
    None,
    "Mutually exclusive parameters. Ensure you are only providing one of: 'previous_response_id' or 'conversation'.",
)
HISTORY: list[tuple[Json, dict[str, Any]]] = [
    ({"previous_response_id": "msg_1"}, bad_id("previous_response_id", "msg_1", "that begins with 'resp'.")),
    ({"previous_response_id": ""}, bad_id("previous_response_id", "", "that begins with 'resp'.")),
    ({"previous_response_id": "resp_\ud83d"}, bad_id("previous_response_id", "resp_\ud83d", GRAMMAR)),
    ({"previous_response_id": "resp_\u0000"}, bad_id("previous_response_id", "resp_\u0000", GRAMMAR)),
    (
        {"previous_response_id": "resp_" + "1" * 60},
        bad_id("previous_response_id", "resp_" + "1" * 60, "of at most 64 characters."),
    ),
    ({"conversation": "resp_1"}, bad_id("conversation", "resp_1", "that begins with 'conv'.")),
    ({"conversation": {"id": "c"}}, bad_id("conversation.id", "c", "that begins with 'conv'.")),
    ({"conversation": {"id": "conv_ü"}}, bad_id("conversation.id", "conv_ü", GRAMMAR)),
    ({"conversation": {}}, missing("conversation.id")),
    ({"conversation": {"id": None}}, wrong_type("conversation.id", "a string", "null")),
    ({"conversation": 7}, wrong_type("conversation", "one of an object or string", "an integer")),
    ({"conversation": "conv_1", "previous_response_id": "resp_1"}, EXCLUSIVE),
    ({"conversation": {"id": "conv_1"}, "previous_response_id": "resp_1", "input": ""}, EXCLUSIVE),
]


@pytest.mark.parametrize(("fields", "expected"), [*MODEL_AND_INPUT, *SCALARS, *NESTED, *NOT_SUPPORTED, *HISTORY])
def test_validate_create_with_a_wrong_field_answers_as_the_api_does(
    fields: Json, expected: dict[str, Any], answer: Answer
) -> None:
    assert answer(**fields) == expected


COMPACTION: list[tuple[Json, dict[str, Any]]] = [
    (
        {"context_management": [{"type": "compaction"}]},
        refusal(
            "unsupported_parameter",
            "context_management",
            "Unsupported parameter: 'context_management'. This gateway is not set up for compaction.",
        ),
    ),
    (
        {"context_management": 7},
        wrong_type("context_management", "an array of context management entries", "an integer"),
    ),
    ({"context_management": [{}]}, missing("context_management[0].type")),
    ({"context_management": [{"type": "t"}]}, wrong_value("context_management[0].type", "t", "'compaction'")),
    (
        {"context_management": [{"type": "compaction", "compact_threshold": "many"}]},
        wrong_type("context_management[0].compact_threshold", "an integer", "a string"),
    ),
    (
        {"input": [{"type": "compaction_trigger"}, {"role": "user", "content": "Hi"}]},
        refusal(
            "invalid_value",
            "input[0]",
            "Invalid 'input[0]': an item of type 'compaction_trigger' must be the last one of 'input'.",
        ),
    ),
]


@pytest.mark.parametrize(("fields", "expected"), COMPACTION)
def test_validate_create_with_a_wrong_wish_for_compaction_says_what_is_wrong(
    fields: Json, expected: dict[str, Any], answer: Answer
) -> None:
    assert answer(**fields) == expected


def test_validate_create_lets_compaction_be_asked_for_where_there_is_any() -> None:
    asked = [{"type": "compaction", "compact_threshold": 1000}]
    items = [{"role": "user", "content": "Hi"}, {"type": "compaction_trigger"}]
    validate_create({"model": "m", "input": items, "context_management": asked}, compacts=True)


@pytest.mark.parametrize("empty", ["", []])
def test_validate_create_with_empty_input_needs_something_to_continue_from(empty: Any, answer: Answer) -> None:
    assert answer(input=empty) == EMPTY_INPUT
    assert answer(input=empty, previous_response_id="resp_1") is None
    assert answer(input=empty, conversation={"id": "conv_1"}) is None


@pytest.mark.parametrize(
    ("given", "expected"),
    [(None, None), ("conv_1", "conv_1"), ({"id": "conv_1"}, "conv_1"), ({"id": "conv_1", "of_tomorrow": 1}, "conv_1")],
)
def test_conversation_id_reads_each_form(given: Any, expected: str | None, answer: Answer) -> None:
    assert answer(conversation=given) is None
    assert conversation_id({"conversation": given}) == expected
    assert conversation_id({}) is None


def test_validate_create_with_more_items_than_allowed_answers_400_before_it_looks_at_them() -> None:
    item = {"role": "user", "content": "Hi"}
    validate_create({"model": "m", "input": [item] * 3}, max_input_items=3)
    with pytest.raises(ClientError) as raised:
        validate_create({"model": "m", "input": [{"type": "telepathy"}] * 4}, max_input_items=3)
    bound = "Expected an array with maximum length 3, but got an array with length 4 instead."
    assert {"status": raised.value.http_status, **error_object(raised.value)} == refusal(
        "array_above_max_length", "input", f"Invalid 'input': array too long. {bound}"
    )


@pytest.mark.parametrize("number", [2**63 - 1, 2**63, 2**64 - 1, 2**64, 10**40, -(2**63), -(2**63) - 1, -(10**40)])
def test_parse_create_with_a_large_integer_keeps_every_digit(number: int) -> None:
    body = b'{"seed":%d}' % number
    assert parse_create(body) == {"seed": number}
    assert json_codec.encode(parse_create(body)) == body


@given(
    st.lists(st.sampled_from(["1" * 18, "2" * 19, "3" * 40, '"', "a", "_", ".", "+", "-", " ", ",", "é"])),
    st.integers(min_value=10**18, max_value=10**40),
)
def test_parse_create_keeps_every_digit_after_ids_that_are_full_of_them(parts: list[str], number: int) -> None:
    body = {"input": "".join(parts), "number": number}
    assert parse_create(json.dumps(body, ensure_ascii=False).encode()) == body


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'{"a": 1, "a": 2}', {"a": 2}),
        (b'{"a": "12345678901234567890", "b": 0.1}', {"a": "12345678901234567890", "b": 0.1}),
        (b'{"a": "\\u0000\\ud83d\\ude00\\udc00"}', {"a": "\u0000\N{GRINNING FACE}\udc00"}),
        (b' {"\\ud83d": null}\r\n', {"\ud83d": None}),
    ],
)
def test_parse_create_with_unusual_json_reads_it_and_can_write_it_again(body: bytes, expected: Json) -> None:
    assert parse_create(body) == expected
    assert parse_create(json_codec.encode(parse_create(body))) == expected


@pytest.mark.parametrize(
    ("parameter", "successor"),
    [
        ("messages", "input"),
        ("max_tokens", "max_output_tokens"),
        ("max_completion_tokens", "max_output_tokens"),
        ("response_format", "text.format"),
        ("reasoning_effort", "reasoning.effort"),
        ("verbosity", "text.verbosity"),
        ("functions", "tools"),
        ("function_call", "tool_choice"),
    ],
)
def test_validate_create_with_a_chat_parameter_names_the_right_one(
    parameter: str, successor: str, answer: Answer
) -> None:
    message = f"Unsupported parameter: '{parameter}'. In the Responses API, this parameter has moved to '{successor}'."
    expected = refusal("unsupported_parameter", parameter, message)
    assert answer(**{parameter: None}) == expected
    assert answer(input=..., **{parameter: []}) == expected


@pytest.mark.parametrize(
    "fields",
    [
        {"temperature": 0, "top_p": 1, "top_logprobs": 0, "max_output_tokens": 1, "max_tool_calls": 1},
        {"temperature": 2.0, "presence_penalty": -2, "frequency_penalty": 2, "top_logprobs": 20},
        {"metadata": {"k" * 64: "v" * 512, "": "", **{f"k{n}": "v" for n in range(14)}}},
        {"text": {"format": {"type": "json_schema", "name": "n", "schema": {"type": "object"}, "strict": None}}},
        {"text": {"format": {"type": "json_object"}, "verbosity": None}},
        {"text": {}, "reasoning": {}, "stream_options": {}, "tools": [], "include": []},
        {"reasoning": {"effort": "minimal", "summary": None, "of_tomorrow": 1}},
        {"background": False, "store": False, "stream": True, "service_tier": "flex"},
        {"conversation": None, "prompt": None, "context_management": None, "of_tomorrow": {"a": [1]}},
        {"seed": 1, "stop": ["x"], "chat_template_kwargs": {"enable_thinking": False}},
        {"user": "\ud83d", "instructions": "\u0000", "\ud83d": 1},
        {"metadata": {"\ud83d": "\udc00", "\u0000": "\u0000"}, "prompt_cache_key": "\u0000"},
        {"reasoning": {"context": "auto", "mode": "pro", "generate_summary": "auto"}},
        {"image": {"context_compression": "disabled"}, "access_programs": {"cyber": "standard"}},
        {"prompt_cache_options": {"mode": "explicit", "ttl": "12h", "prewarm": False, "comparison_response_id": None}},
        {"prompt_cache_key": "k" * 64, "safety_identifier": "s" * 64},
    ],
)
def test_validate_create_with_all_that_the_api_allows_accepts_it(fields: Json, answer: Answer) -> None:
    assert answer(**fields) is None


NULLABLE = [
    "previous_response_id",
    "include",
    "tools",
    "tool_choice",
    "metadata",
    "text",
    "temperature",
    "top_p",
    "presence_penalty",
    "frequency_penalty",
    "parallel_tool_calls",
    "stream",
    "stream_options",
    "background",
    "max_output_tokens",
    "max_tool_calls",
    "reasoning",
    "user",
    "safety_identifier",
    "prompt_cache_key",
    "prompt_cache_retention",
    "truncation",
    "instructions",
    "store",
    "service_tier",
    "top_logprobs",
    "conversation",
    "prompt",
    "context_management",
    "background_options",
    "moderation",
    "image",
    "access_programs",
    "prompt_cache_options",
]


def test_validate_create_with_null_for_everything_optional_accepts_it(answer: Answer) -> None:
    assert answer(**dict.fromkeys(NULLABLE)) is None


def test_validate_create_with_several_faults_reports_the_first_in_the_apis_order(answer: Answer) -> None:
    expected = wrong_type("tools", "an array of tools", "a string")
    assert answer(top_logprobs="x", store="x", temperature="x", metadata="x", tools="x") == expected


def test_client_error_of_a_request_shows_nothing_of_pydantic() -> None:
    with pytest.raises(ClientError) as raised:
        validate_create({"model": "m", "input": "Hi", "tools": [{"type": "mcp", "authorization": ["s3cret"]}]})
    assert raised.value.__suppress_context__
    assert "s3cret" not in str(error_body(raised.value))


json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
surrogates = st.sampled_from(["\ud83d", "a\udc00", "x" * 600, "{param}", "message", "function", "never", "auto"])
words = surrogates | st.sampled_from(
    [
        "mcp",
        "input_text",
        "output_text",
        "json_schema",
        "reasoning",
        "mcp_call",
        "user",
        "assistant",
        "http://h/",
        "http://[h",
    ]
)
KEYS = [
    "type", "role", "content", "text", "id", "call_id", "output", "name", "arguments", "summary", "format", "schema",
    "server_label", "server_url", "require_approval", "headers", "allowed_tools", "tools", "mode", "never", "\ud83d",
]  # fmt: skip
likely = st.recursive(
    json_values | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5),
    max_leaves=12,
)
bodies = st.builds(
    lambda required, optional: {**required, **optional},
    st.fixed_dictionaries({}, optional={"model": st.just("m") | likely, "input": st.just("Hi") | likely}),
    st.dictionaries(st.sampled_from([*NULLABLE, "of_tomorrow"]), likely, max_size=4),
)


def outcome(check: Callable[[], object]) -> ClientError | None:
    """The error that a client is told, if there is one; any other exception fails the test."""
    try:
        check()
    except ClientError as error:
        return error
    return None


@settings(max_examples=200, deadline=None)
@given(bodies)
def test_validate_create_with_any_json_accepts_or_answers_400_and_changes_nothing(body: Json) -> None:
    before = deepcopy(body)
    error = outcome(lambda: validate_create(body))
    assert body == before
    if error is not None:
        assert (error.http_status, error.type) == (400, "invalid_request_error")
        assert len(error.message) < 2_000
        assert json_codec.encode(error_body(error))


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=50) | json_values.map(json_codec.encode) | bodies.map(json_codec.encode))
def test_parse_create_with_any_bytes_gives_an_object_or_answers_400(data: bytes) -> None:
    parsed: list[Json] = []
    error = outcome(lambda: parsed.append(parse_create(data)))
    assert [type(value) for value in parsed] == ([dict] if error is None else [])
    assert error is None or (error.http_status, error.type) == (400, "invalid_request_error")
