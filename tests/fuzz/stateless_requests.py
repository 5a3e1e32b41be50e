"""Requests that ask for no state, or seem to: what clients send, what is odd, and what hides something.

A body is put together from texts of keys and values, so that a key may come twice, be escaped, or be none at all.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from fuzz.create_requests import WHOLE
from fuzz.damage import damaged

JSON_HEADERS = {"content-type": "application/json"}


@dataclass(frozen=True)
class Sent:
    """A request as a client sends it, to `/v1/responses` and a query."""

    body: bytes
    headers: dict[str, str] = field(default_factory=lambda: dict(JSON_HEADERS))
    query: str = ""


texts = st.text(max_size=12) | st.sampled_from(["", "Hi", '"', "\\", "\n", "é", "漢字", "😀", "\ud83d", "\x00", "\x7f"])
numbers = (
    st.integers(-3, 10**6)
    | st.floats(-3, 3)
    | st.sampled_from([0, -0.0, 1.0, 2.0, 2**53, 2**64, 10**20, 1e-7, 1e22, 0.1])
)
scalars = texts | numbers | st.booleans() | st.none()
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
roles = st.sampled_from(["user", "system", "developer", "assistant", "tool", "User"])


def _fields(required: dict[str, st.SearchStrategy[Any]], **optional: st.SearchStrategy[Any]) -> Any:
    return st.fixed_dictionaries(required, optional=optional)


parts = _fields({"type": st.sampled_from(["input_text", "input_text", "output_text", "input_image"]), "text": texts})
messages = _fields(
    {"role": roles, "content": texts | st.lists(parts, max_size=3)},
    type=st.sampled_from(["message", "message", "reasoning", "item_reference"]),
    id=st.sampled_from(["msg_1", "x", ""]),
    status=st.sampled_from(["completed", "odd"]),
)
items = messages | _fields(
    {"type": st.sampled_from(["function_call", "function_call_output", "mcp_approval_response", "compaction"])},
    call_id=texts,
    output=texts,
    name=texts,
    arguments=texts,
)
tools = _fields(
    {"type": st.sampled_from(["function", "function", "function", "mcp", "web_search", "custom"])},
    name=st.sampled_from(["a", "b", "look_up", "no good", "", "a" * 65]),
    description=texts,
    parameters=st.dictionaries(texts, values, max_size=3) | values,
    strict=st.booleans() | st.none(),
    server_label=texts,
    defer_loading=st.booleans(),
)

LEGAL: dict[str, st.SearchStrategy[Any]] = {
    "model": st.sampled_from(["m", "openai/gpt-oss-120b", "Qwen/Qwen3-8B:free"]),
    "input": texts.filter(bool)
    | st.lists(
        _fields(
            {"role": st.sampled_from(["user", "system", "developer"])},
            content=texts | st.lists(_fields({"type": st.just("input_text"), "text": texts}), min_size=1, max_size=2),
            type=st.just("message"),
        ).filter(lambda message: "content" in message)
        | _fields({"role": st.just("assistant"), "content": texts}),
        min_size=1,
        max_size=3,
    ),
    "instructions": texts,
    "stream": st.booleans(),
    "temperature": st.integers(0, 2) | st.floats(0, 2).map(lambda number: round(number, 3)),
    "top_p": st.floats(0, 1).map(lambda number: round(number, 6)),
    "max_output_tokens": st.integers(1, 10**14),
    "parallel_tool_calls": st.booleans(),
    "tools": st.lists(
        _fields(
            {"type": st.just("function"), "name": st.sampled_from(["a", "b", "look_up", "a" * 64])},
            description=texts,
            parameters=st.dictionaries(st.sampled_from(["type", "x y", "properties", "$ref"]), values, max_size=3),
            strict=st.booleans(),
        ),
        min_size=1,
        max_size=3,
        unique_by=lambda tool: tool["name"],
    ),
    "seed": st.integers(-(10**14), 10**14),
    "chat_template_kwargs": st.dictionaries(st.sampled_from(["enable_thinking", "x-y"]), scalars, max_size=2),
}
"""What clients send, and a bypass is for."""

PARAMETERS: dict[str, st.SearchStrategy[Any]] = {
    "model": st.sampled_from(["m", "openai/gpt-oss-120b", "a b", "", "é", 'a"b']),
    "input": st.just("Hi") | texts | st.lists(items, max_size=4) | st.lists(messages, min_size=1, max_size=4),
    "instructions": texts | st.none(),
    "store": st.sampled_from([False, False, False, True, None, "false", 0]),
    "stream": st.booleans() | st.none(),
    "temperature": numbers,
    "top_p": numbers,
    "max_output_tokens": st.integers(-1, 10**17) | numbers,
    "parallel_tool_calls": st.booleans() | st.none(),
    "tool_choice": st.sampled_from(["auto", "none", "required", "other", {"type": "function", "name": "a"}]),
    "tools": st.lists(tools, max_size=3),
    "seed": values,
    "chat_template_kwargs": values,
    "top_k": values,
}
STATEFUL = {
    "previous_response_id": "resp_1",
    "conversation": "conv_1",
    "context_management": [{"type": "compaction", "compact_threshold": 2000}],
    "background": True,
    "truncation": "auto",
    "include": ["reasoning.encrypted_content"],
    "prompt": {"id": "pmpt_1"},
    "metadata": {"a": 1},
    "max_tokens": 5,
    "messages": [],
    "stream_options": {"include_obfuscation": False},
    "text": {"format": {"type": "text"}},
    "service_tier": "odd",
    "max_tool_calls": 1,
    "tools": [{"type": "mcp", "server_label": "x", "server_url": "http://127.0.0.1:1/"}],
}


@st.composite
def pairs(draw: st.DrawFn) -> list[tuple[str, str]]:
    """The top level of a body, as texts: what a client might send, and now and then what it must not."""
    plain = {"model": "m", "input": "Hi", "store": False}
    names = draw(st.lists(st.sampled_from(sorted(LEGAL)), max_size=6, unique=True))
    chosen: dict[str, Any] = {**plain, **{name: draw(LEGAL[name]) for name in names}}
    match draw(st.integers(0, 5)):
        case 0:
            name = draw(st.sampled_from(sorted(PARAMETERS)))
            chosen[name] = draw(PARAMETERS[name])
        case 1:
            name = draw(st.sampled_from(sorted(STATEFUL)))
            chosen[name] = draw(st.just(STATEFUL[name]) | st.none())
    ascii_only = draw(st.booleans())
    return [(json.dumps(name), _text(value, ascii_only)) for name, value in draw(st.permutations(list(chosen.items())))]


def _text(value: object, ascii_only: bool) -> str:
    return json.dumps(value, ensure_ascii=ascii_only)


@st.composite
def hidden(draw: st.DrawFn) -> list[tuple[str, str]]:
    """The same with something that only a careless reader would take for harmless."""
    given = draw(pairs())
    more = draw(
        st.sampled_from(
            [
                ('"store"', "true"),
                ('"store"', "false"),
                (r'"\u0073tore"', "true"),
                (r'"st\u006fre"', "false"),
                (r'"previous_response\u005fid"', '"resp_1"'),
                (r'"\u0063onversation"', '"conv_1"'),
                ('"Store"', "true"),
                ('"metadata"', '{"store": "false"}'),
                ('"k"', '{"store": false, "store": true}'),
                ('"k"', "[" * 40 + "]" * 40),
                ('"k"', "[" * 250 + "]" * 250),
                ('"k"', '{"a":' * 30 + "1" + "}" * 30),
                ('"k"', "1e400"),
                ('"k"', "123456789012345678901234567890"),
                ('"k"', "NaN"),
                ('"k"', "-Infinity"),
                ('"k"', "01"),
                ('"k"', "-0"),
                ('"k"', "1."),
                ('"k"', ".5"),
                ('"k"', "1E5"),
                ('"k"', "0.1000000000000000055511151231257827"),
                ('"k"', r'"\ud83d"'),
                ('"k"', r'"\ud83d\ude00"'),
                ('"k"', r'"\x41"'),
                ('"k"', '"\t"'),
                ('"k"', "'a'"),
                ('"k"', '"a" "b"'),
                ('"k"', "[1,]"),
                ('"k"', "[1 2]"),
                ('"k"', "{,}"),
                ('"k"', "// a comment\n1"),
                ("k", "1"),
                ('""', "1"),
                ('"a\\"b"', "1"),
                ('"input"', '"again"'),
                ('"tools"', '[{"type": "function", "name": "a"}, {"type": "function", "name": "a"}]'),
                ('"tools"', '[{"type": "function", "type": "mcp", "name": "a", "server_label": "x"}]'),
            ]
        )
    )
    at = draw(st.integers(0, len(given)))
    return [*given[:at], more, *given[at:]]


@st.composite
def bodies(draw: st.DrawFn) -> bytes:
    """The text of a body, spaced in one way or another, and sometimes damaged."""
    given = draw(st.one_of(pairs(), pairs(), hidden()))
    space = draw(st.sampled_from(["", "", " ", "\n  ", "\t\r\n"]))
    text = "{" + f",{space}".join(f"{space}{name}{space}:{space}{value}" for name, value in given) + space + "}"
    body = text.encode(errors="surrogatepass")
    match draw(st.integers(0, 29)):
        case 0:
            return draw(st.sampled_from([b"\xef\xbb\xbf", b"\x00", b"[", b" \n"])) + body
        case 1:
            return body + draw(st.sampled_from([b"}", b"x", b"\x00", b" \n", b"{}", b","]))
        case 2 | 3:
            at = draw(st.integers(0, len(body)))
            return body[:at] + draw(st.binary(max_size=2)) + body[at + draw(st.integers(0, 2)) :]
        case 4:
            return body[: draw(st.integers(0, len(body)))]
        case 5:
            return body.decode(errors="surrogatepass").encode("utf-16", errors="surrogatepass")
    return body


_damaged_whole = damaged([WHOLE]).map(lambda request: json.dumps({**request, "store": False}).encode())
_headers = st.sampled_from(
    [
        *[JSON_HEADERS] * 60,
        {"content-type": "application/json; charset=utf-8"},
        {"content-type": "text/plain"},
        {},
        {**JSON_HEADERS, "content-encoding": "identity"},
        {**JSON_HEADERS, "content-encoding": "gzip"},
        {**JSON_HEADERS, "origin": "http://evil.example"},
        {"content-type": "text/plain", "origin": "http://evil.example"},
        {**JSON_HEADERS, "x-attache-tenant": "other", "x-attache-stored": "true"},
        {**JSON_HEADERS, "accept": "text/event-stream", "accept-encoding": "gzip", "x-own": "1"},
    ]
)

_queries = st.sampled_from([*[""] * 19, "?a=1"])
requests = st.builds(Sent, st.one_of(*[bodies()] * 4, _damaged_whole), _headers, _queries)
"""Any of these, with headers and a query of all kinds."""
