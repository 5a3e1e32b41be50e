"""Tool declarations, tool_choice, and what of them a response shows."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, get_args, get_type_hints

import pytest
from openai.types.responses import ToolParam

from attache_core.errors import ClientError, error_object
from attache_core.json_codec import Json
from attache_core.types.request import validate_create
from attache_core.types.tools import HOSTED_TOOLS, SHAPES, called_names, is_hosted, public_tools, runnable

Answer = Callable[..., dict[str, Any] | None]

FUNCTION: Json = {"type": "function", "name": "f"}
MCP: Json = {"type": "mcp", "server_label": "s", "server_url": "https://h/mcp", "require_approval": "never"}


def refusal(code: str | None, param: str, message: str) -> dict[str, Any]:
    """The whole answer to a declaration that cannot be taken."""
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


def unknown(param: str) -> dict[str, Any]:
    """The answer to a field that nobody knows, where it could mean something."""
    return refusal("unknown_parameter", param, f"Unknown parameter: '{param}'.")


def without(tool: Json, name: str) -> Json:
    """A declaration that lacks a field."""
    return {key: value for key, value in tool.items() if key != name}


TOOL_TYPES = "'function', 'mcp', 'custom', 'namespace', 'tool_search', 'shell', 'local_shell', and 'apply_patch'"
FORMATS = "'text' and 'grammar'"
PATTERN = "string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'."
BAD_NAME = refusal("invalid_value", "tools[1].name", f"Invalid 'tools[1].name': {PATTERN}")
URL = refusal(
    "invalid_value", "tools[1].server_url", "Invalid 'tools[1].server_url': expected an absolute http or https URL."
)
FIELD_VALUE = "expected printable ASCII, as an HTTP header value."

REFUSED: list[tuple[Any, dict[str, Any]]] = [
    ("f", wrong_type("tools[1]", "an object", "a string")),
    ({"name": "f"}, missing("tools[1].type")),
    *[
        ({"type": kind, "of_tomorrow": 1}, wrong_value("tools[1].type", kind, TOOL_TYPES))
        for kind in (*sorted(HOSTED_TOOLS), "web_search_2025_08_26", "web_search_preview_2025_03_11")
    ],
    *[
        (
            {"type": "tool_search", **fields},
            refusal(
                "invalid_value",
                "tools[1].type",
                "This gateway does not execute 'tool_search' itself: set 'execution' to 'client'.",
            ),
        )
        for fields in ({}, {"execution": None}, {"execution": "server"})
    ],
    ({"type": "telepathy"}, wrong_value("tools[1].type", "telepathy", TOOL_TYPES)),
    ({"type": "shell", "environment": "local"}, wrong_type("tools[1].environment", "an object", "a string")),
    (
        {"type": "shell", "environment": {"type": "container_auto"}},
        refusal(
            "invalid_value",
            "tools[1].environment.type",
            "Invalid value: 'container_auto'. Supported values are: 'local'.",
        ),
    ),
    ({"type": "web_search_2025"}, wrong_value("tools[1].type", "web_search_2025", TOOL_TYPES)),
    ({"type": 7}, wrong_value("tools[1].type", "", TOOL_TYPES)),
    ({"type": "tool_search", "execution": 7}, wrong_type("tools[1].execution", "one of 'client'", "an integer")),
    ({"type": "custom", "name": "a b"}, BAD_NAME),
    ({"type": "custom", "name": "c", "format": {"type": "xml"}}, wrong_value("tools[1].format.type", "xml", FORMATS)),
    (
        {"type": "custom", "name": "c", "format": {"type": "grammar", "syntax": "lark"}},
        missing("tools[1].format.definition"),
    ),
    (
        {"type": "namespace", "name": "n", "tools": [FUNCTION, {"type": "mcp", "authorization": "s3cret"}]},
        wrong_value("tools[1].tools[1].type", "mcp", "'function' and 'custom'"),
    ),
    ({"type": "namespace", "name": "n"}, missing("tools[1].tools")),
    ({"type": "function"}, missing("tools[1].name")),
    ({"type": "function", "function": {"name": "f"}}, missing("tools[1].name")),
    ({"type": "function", "name": "a b"}, BAD_NAME),
    ({"type": "function", "name": "é"}, BAD_NAME),
    (
        {"type": "function", "name": "\ud83d"},
        refusal(
            "invalid_value",
            "tools[1].name",
            "Invalid 'tools[1].name': string is not well-formed Unicode. "
            "Expected a string without unpaired surrogates.",
        ),
    ),
    (
        {"type": "function", "name": "f" * 65},
        refusal(
            "string_above_max_length",
            "tools[1].name",
            "Invalid 'tools[1].name': string too long. "
            "Expected a string with maximum length 64, but got a string with length 65 instead.",
        ),
    ),
    ({**FUNCTION, "name": "g", "strict": "yes"}, wrong_type("tools[1].strict", "a boolean", "a string")),
    ({**FUNCTION, "name": "g", "parameters": []}, wrong_type("tools[1].parameters", "an object", "an array")),
    (without(MCP, "server_label"), missing("tools[1].server_label")),
    (without(MCP, "server_url"), missing("tools[1].server_url")),
    ({**MCP, "server_url": "ftp://h"}, URL),
    ({**MCP, "server_url": "/mcp"}, URL),
    ({**MCP, "server_url": "https://"}, URL),
    ({**MCP, "server_url": "https://[h"}, URL),
    ({**MCP, "server_url": "https://h:port"}, URL),
    ({**MCP, "server_url": "https://h/a b"}, URL),
    ({**MCP, "server_url": "https://h/\ud83d"}, URL),
    ({**MCP, "server_url": "https://h/\u0000"}, URL),
    (
        {**without(MCP, "server_url"), "connector_id": "connector_gmail"},
        refusal(
            "unsupported_parameter",
            "tools[1].connector_id",
            "Unsupported parameter: 'tools[1].connector_id'. A server is reached "
            "by its 'server_url', or by a 'server_label' that the gateway knows.",
        ),
    ),
    ({**MCP, "require_approval": "Never"}, wrong_value("tools[1].require_approval", "Never", "'always' and 'never'")),
    (
        {**MCP, "require_approval": True},
        wrong_type("tools[1].require_approval", "one of 'always', 'never' or object", "a boolean"),
    ),
    ({**MCP, "require_approval": {"Never": {}}}, unknown("tools[1].require_approval.Never")),
    ({**MCP, "require_approval": {"never": {"tools": ["f"]}}}, unknown("tools[1].require_approval.never.tools")),
    (
        {**MCP, "require_approval": {"never": ["f"]}},
        wrong_type("tools[1].require_approval.never", "an object", "an array"),
    ),
    (
        {**MCP, "require_approval": {"always": {"tool_names": "f"}}},
        wrong_type("tools[1].require_approval.always.tool_names", "an array of strings", "a string"),
    ),
    (
        {**MCP, "require_approval": {"always": {"read_only": 1}}},
        wrong_type("tools[1].require_approval.always.read_only", "a boolean", "an integer"),
    ),
    (
        {**MCP, "require_approval": {"always": {"tool_names": ["a", "f"]}, "never": {"tool_names": ["f"]}}},
        refusal(
            "invalid_value",
            "tools[1].require_approval",
            "Invalid 'tools[1].require_approval': the tool 'f' is named in both 'always' and 'never'.",
        ),
    ),
    (
        {**MCP, "require_approval": {"always": {"read_only": True}, "never": {"read_only": True}}},
        refusal(
            "invalid_value",
            "tools[1].require_approval",
            "Invalid 'tools[1].require_approval': 'always' and 'never' name the same tools.",
        ),
    ),
    (
        {**MCP, "allowed_tools": "f"},
        wrong_type("tools[1].allowed_tools", "one of an array of strings or object", "a string"),
    ),
    ({**MCP, "allowed_tools": ["f", 7]}, wrong_type("tools[1].allowed_tools[1]", "a string", "an integer")),
    (
        {**MCP, "allowed_tools": {"tool_names": "f"}},
        wrong_type("tools[1].allowed_tools.tool_names", "an array of strings", "a string"),
    ),
    (
        {**MCP, "headers": ["s3cret"]},
        wrong_type("tools[1].headers", "an object with string keys and string values", "an array"),
    ),
    ({**MCP, "headers": {"x-key": 7}}, wrong_type("tools[1].headers.x-key", "a string", "an integer")),
    (
        {**MCP, "headers": {"x-key": "s3cret\r\nx-other: 1"}},
        refusal("invalid_value", "tools[1].headers.x-key", f"Invalid 'tools[1].headers.x-key': {FIELD_VALUE}"),
    ),
    (
        {**MCP, "headers": {"s3cret: ": "x"}},
        refusal(
            "invalid_value",
            "tools[1].headers",
            "Invalid 'tools[1].headers': a key is not the name of an HTTP header.",
        ),
    ),
    *[
        (
            {**MCP, "headers": {name: "s3cret"}},
            refusal(
                "invalid_value",
                "tools[1].headers",
                f"Invalid 'tools[1].headers': '{name}' is set by HTTP or MCP itself.",
            ),
        )
        for name in ("Host", "content-length", "Transfer-Encoding", "Mcp-Session-Id", "accept-encoding")
    ],
    (
        {**MCP, "authorization": "s3cr\u00e9t"},
        refusal("invalid_value", "tools[1].authorization", f"Invalid 'tools[1].authorization': {FIELD_VALUE}"),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("tool", "expected"), REFUSED)
def test_tools_with_a_declaration_that_is_wrong_answers_400_with_its_path(
    tool: Any, expected: dict[str, Any], answer: Answer
) -> None:
    refused = answer(tools=[FUNCTION, tool])
    assert refused == expected
    assert "s3cret" not in str(refused)


@pytest.mark.parametrize(
    ("tools", "message"),
    [
        ([FUNCTION, MCP, FUNCTION], "'f' is the 'name' of more than one tool. It must be unique."),
        ([FUNCTION, {"type": "custom", "name": "f"}], "'f' is the 'name' of more than one tool. It must be unique."),
        ([MCP, FUNCTION, MCP], "'s' is the 'server_label' of more than one tool. It must be unique."),
    ],
)
def test_tools_with_a_name_twice_answers_400(tools: list[Json], message: str, answer: Answer) -> None:
    assert answer(tools=tools) == refusal("invalid_value", "tools", f"Invalid 'tools': {message}")


def test_tools_with_too_many_declarations_answers_400(answer: Answer) -> None:
    tools = [{"type": "function", "name": f"f{n}"} for n in range(129)]
    bound = "Expected an array with maximum length 128, but got an array with length 129 instead."
    assert answer(tools=tools) == refusal(
        "array_above_max_length", "tools", f"Invalid 'tools': array too long. {bound}"
    )
    assert answer(tools=tools[:128]) is None


@pytest.mark.parametrize(
    "tool",
    [
        {**FUNCTION, "parameters": None, "strict": None, "description": None},
        {**FUNCTION, "parameters": {"type": "object", "$defs": {}}, "strict": False, "defer_loading": True},
        {**MCP, "server_label": "f"},
        {"type": "custom", "name": "c"},
        {"type": "custom", "name": "c", "format": {"type": "text"}, "description": "d", "defer_loading": True},
        {"type": "custom", "name": "c", "format": {"type": "grammar", "syntax": "regex", "definition": "a+"}},
        {"type": "namespace", "name": "n", "description": "d", "tools": [FUNCTION, {"type": "custom", "name": "c"}]},
        {"type": "tool_search", "execution": "client", "description": None, "parameters": {"type": "object"}},
        {"type": "shell"},
        {"type": "shell", "environment": {"type": "local", "skills": []}},
        {"type": "local_shell"},
        {"type": "apply_patch", "allowed_callers": None},
        {**MCP, "allowed_tools": None, "headers": None, "authorization": None, "server_description": None},
        {**MCP, "allowed_tools": ["a", "b.c"], "headers": {"x-key": "a b\t~"}, "authorization": "token"},
        {**MCP, "allowed_tools": {"tool_names": ["a"], "read_only": True}, "connector_id": None},
        {**MCP, "server_url": "http://user:password@127.0.0.1:9/mcp?key=1#x"},
        without(MCP, "require_approval"),
        {**MCP, "require_approval": None},
        {**MCP, "require_approval": "always"},
        {**MCP, "require_approval": {}},
        {**MCP, "require_approval": {"always": None, "never": {}}},
        {
            **MCP,
            "require_approval": {"always": {"tool_names": ["f"]}, "never": {"tool_names": ["g"], "read_only": True}},
        },
        {**MCP, "require_approval": {"always": {"read_only": False}, "never": {"read_only": True}}},
    ],
)
def test_tools_with_a_declaration_of_the_api_is_accepted(tool: Json, answer: Answer) -> None:
    assert answer(tools=[{**FUNCTION, "name": "other"}, tool]) is None


MODES = "'none', 'auto', or 'required'"
NOT_FOUND = refusal(None, "tool_choice", "Tool choice 'function' not found in 'tools' parameter.")
MCP_NOT_FOUND = refusal(None, "tool_choice", "Tool choice 'mcp' not found in 'tools' parameter.")

CHOICES: list[tuple[Any, dict[str, Any] | None]] = [
    ("none", None),
    ("auto", None),
    ("required", None),
    (None, None),
    ("bogus", wrong_value("tool_choice", "bogus", "'none', 'auto', and 'required'")),
    (7, wrong_type("tool_choice", f"one of an object or {MODES}", "an integer")),
    ({}, missing("tool_choice.type")),
    ({"type": "function"}, missing("tool_choice.name")),
    ({"type": "function", "function": {"name": "f"}}, missing("tool_choice.name")),
    ({"type": "function", "name": "f"}, None),
    ({"type": "function", "name": "g"}, NOT_FOUND),
    ({"type": "function", "name": "s"}, NOT_FOUND),
    ({"type": "custom", "name": "c"}, None),
    (
        {"type": "custom", "name": "f"},
        refusal(None, "tool_choice", "Tool choice 'custom' not found in 'tools' parameter."),
    ),
    ({"type": "mcp"}, missing("tool_choice.server_label")),
    ({"type": "mcp", "server_label": "s"}, None),
    ({"type": "mcp", "server_label": "s", "name": "add"}, None),
    ({"type": "mcp", "server_label": "f"}, MCP_NOT_FOUND),
    (
        {"type": "web_search"},
        refusal(None, "tool_choice", "Tool choice 'web_search' not found in 'tools' parameter."),
    ),
    (
        {"type": "telepathy"},
        wrong_value(
            "tool_choice.type",
            "telepathy",
            "'function', 'mcp', 'custom', 'allowed_tools', 'file_search', 'web_search', 'web_search_preview', "
            "'computer', 'code_interpreter', 'image_generation', 'shell', and 'apply_patch'",
        ),
    ),
    (
        {"type": "allowed_tools", "mode": "auto", "tools": [FUNCTION, {"type": "mcp", "server_label": "s"}]},
        None,
    ),
    ({"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "g"}]}, NOT_FOUND),
    (
        {"type": "allowed_tools", "mode": "none", "tools": []},
        wrong_value("tool_choice.mode", "none", "'auto' and 'required'"),
    ),
    (
        {"type": "allowed_tools", "mode": "auto", "tools": ["f"]},
        wrong_type("tool_choice.tools[0]", "an object", "a string"),
    ),
]


@pytest.mark.parametrize(("choice", "expected"), CHOICES)
def test_tool_choice_with_tools_is_accepted_only_when_they_have_it(
    choice: Any, expected: dict[str, Any] | None, answer: Answer
) -> None:
    assert answer(tools=[FUNCTION, MCP, {"type": "custom", "name": "c"}], tool_choice=choice) == expected


@pytest.mark.parametrize("tools", [..., None, []])
def test_tool_choice_without_tools_answers_as_the_api_does(tools: Any, answer: Answer) -> None:
    assert answer(tools=tools, tool_choice={"type": "function", "name": "get_weather"}) == NOT_FOUND
    assert answer(tools=tools, tool_choice="required") == refusal(
        None, "tool_choice", "Tool choice 'required' must be specified with 'tools' parameter."
    )
    assert answer(tools=tools, tool_choice="auto") is None


def test_public_tools_of_a_bare_function_fills_in_the_defaults() -> None:
    shown = public_tools([FUNCTION])
    assert shown == [{"type": "function", "description": None, "name": "f", "parameters": None, "strict": True}]
    assert list(shown[0]) == ["type", "description", "name", "parameters", "strict"]


def test_public_tools_of_a_full_function_shows_it_as_declared() -> None:
    tool = {**FUNCTION, "description": "d", "parameters": {"type": "object"}, "strict": False, "defer_loading": True}
    assert public_tools([tool]) == [tool]


def test_tool_types_are_those_of_the_api_and_no_others() -> None:
    theirs = {name for member in get_args(ToolParam) for name in get_args(get_type_hints(member)["type"])}
    undated = {re.sub(r"_\d{4}_\d{2}_\d{2}$", "", name) for name in theirs}
    assert undated == {*SHAPES, *HOSTED_TOOLS}


@pytest.mark.parametrize(
    "kind", ["web_search_\u0662\u0660\u0662\u0665_\u0660\u0668_\u0662\u0666", "web_search_2025_08_26\n"]
)
def test_type_with_what_only_looks_like_a_date_is_no_hosted_one(kind: str) -> None:
    """The types of hosted tools go into a response header, which such a one would break."""
    assert not is_hosted({"type": kind})


def test_runnable_of_tools_leaves_out_what_is_hosted_and_names_it_once() -> None:
    search = {"type": "web_search"}
    tools = [search, FUNCTION, {"type": "file_search"}, {**search, "filters": None}, {"type": "tool_search"}, MCP]
    assert runnable(tools) == ([FUNCTION, MCP], ["web_search", "file_search", "tool_search"])
    assert runnable(None) == runnable([]) == ([], [])


SEARCH_NOT_FOUND = refusal(None, "tool_choice", "Tool choice 'web_search' not found in 'tools' parameter.")
HOSTED: Json = {"type": "web_search", "of_tomorrow": 1}
OMITTED: list[tuple[list[Json], Any, dict[str, Any]]] = [
    ([HOSTED, {"type": "function"}], None, missing("tools[1].name")),
    ([HOSTED], {"type": "web_search"}, SEARCH_NOT_FOUND),
    (
        [HOSTED, FUNCTION],
        {"type": "allowed_tools", "mode": "auto", "tools": [FUNCTION, {"type": "web_search"}]},
        SEARCH_NOT_FOUND,
    ),
    (
        [HOSTED],
        "required",
        refusal(None, "tool_choice", "Tool choice 'required' must be specified with 'tools' parameter."),
    ),
]


@pytest.mark.parametrize(("tools", "choice", "expected"), OMITTED)
def test_validate_create_that_omits_hosted_tools_checks_all_else(
    tools: list[Json], choice: Any, expected: dict[str, Any]
) -> None:
    validate_create({"model": "m", "input": "Hi", "tools": [HOSTED, FUNCTION]}, omit_hosted_tools=True)
    body = {"model": "m", "input": "Hi", "tools": tools, "tool_choice": choice}
    with pytest.raises(ClientError) as raised:
        validate_create(body, omit_hosted_tools=True)
    assert {"status": raised.value.http_status, **error_object(raised.value)} == expected


def test_called_names_are_those_inside_namespaces_too() -> None:
    tools: list[Json] = [
        {**FUNCTION, "name": "f"},
        {"type": "namespace", "name": "n", "tools": [{"type": "custom", "name": "c"}, {**FUNCTION, "name": "g"}]},
        {"type": "tool_search", "execution": "client"},
        MCP,
    ]
    assert called_names(tools) == {"f", "c", "g"}


@pytest.mark.parametrize(
    ("tool", "shown"),
    [
        ({"type": "custom", "name": "c"}, {"description": None, "format": {"type": "text"}}),
        ({"type": "custom", "name": "c", "format": None}, {"description": None, "format": {"type": "text"}}),
        (
            {"type": "custom", "name": "c", "format": {"type": "grammar", "syntax": "lark", "definition": "x"}},
            {"description": None},
        ),
        (
            {"type": "namespace", "name": "n", "tools": [FUNCTION]},
            {
                "description": "",
                "tools": [{**FUNCTION, "description": None, "parameters": None, "strict": True}],
            },
        ),
        ({"type": "tool_search", "execution": "client"}, {"description": None, "parameters": None}),
        ({"type": "shell"}, {"allowed_callers": None, "environment": None}),
        (
            {"type": "shell", "environment": {"type": "local"}},
            {"allowed_callers": None, "environment": {"type": "local", "skills": None}},
        ),
        ({"type": "local_shell"}, {}),
        ({"type": "apply_patch"}, {"allowed_callers": None}),
    ],
)
def test_public_tools_of_a_clients_tool_shows_it_with_its_defaults(tool: Json, shown: Json) -> None:
    assert public_tools([tool]) == [{**tool, **shown}]


def test_public_tools_of_nothing_is_nothing() -> None:
    assert public_tools(None) == public_tools([]) == []


def test_public_tools_of_an_mcp_server_shows_no_secret() -> None:
    tool = {
        **MCP,
        "server_url": "https://user:s3cret@h:8443/mcp?api_key=s3cret#s3cret",
        "headers": {"x-key": "s3cret"},
        "authorization": "s3cret",
        "of_tomorrow": "s3cret",
        "allowed_tools": {"read_only": True},
    }
    shown = public_tools([tool])
    assert shown == [
        {
            "type": "mcp",
            "allowed_tools": {"read_only": True},
            "headers": None,
            "require_approval": "never",
            "server_description": None,
            "server_label": "s",
            "server_url": "https://h:8443/mcp",
        }
    ]
    assert "s3cret" not in str(shown)


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        (None, None),
        ("always", "always"),
        ("never", "never"),
        ({}, {"always": None, "never": None}),
        (
            {"always": None, "never": {"tool_names": ["f"]}},
            {"always": None, "never": {"read_only": None, "tool_names": ["f"]}},
        ),
        ({"always": {}}, {"always": {"read_only": None, "tool_names": None}, "never": None}),
    ],
)
def test_public_tools_shows_approval_as_it_was_given_and_every_field_of_a_filter(given: Any, shown: Any) -> None:
    (tool,) = public_tools([{**MCP, "require_approval": given}])
    assert tool["require_approval"] == shown
