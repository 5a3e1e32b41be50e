from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attache_filters.extproc.session import (
    Answer,
    LocalProtocolError,
    Messages,
    ProtocolError,
    RemoteProtocolError,
    RequestBody,
    RequestEnd,
    RequestHeaders,
    ResponseBody,
    ResponseEnd,
    ResponseHeaders,
    Session,
    SessionEvent,
)
from attache_filters.extproc.wire import ext_proc_pb2 as pb
from filters.extproc import from_envoy as envoy
from filters.extproc.from_envoy import POST
from filters.extproc.to_envoy import check_order, said, said_all

HEAD = RequestHeaders("POST", "/v1/responses", "gateway", {})


def received(session: Session, *messages: pb.ProcessingRequest) -> list[SessionEvent]:
    return [event for message in messages for event in session.receive(message)]


def held(*messages: pb.ProcessingRequest) -> Session:
    session = Session()
    received(session, *(messages or (envoy.request_headers(), envoy.request_body(b"in", end=True))))
    return session


def continued(*response: pb.ProcessingRequest) -> Session:
    session = held()
    session.continue_request(path="/v1/responses", headers={}, body=b"in")
    received(session, *response)
    return session


# ---- the request, read


@pytest.mark.parametrize(
    ("messages", "events"),
    [
        pytest.param(
            [envoy.request_body(b"ab"), envoy.request_body(b"", end=True)],
            [RequestBody(b"ab"), RequestEnd()],
            id="as Envoy sends a client's",
        ),
        pytest.param(
            [envoy.request_body(b"ab", end=True)],
            [RequestBody(b"ab"), RequestEnd()],
            id="as an earlier ext_proc filter sends it",
        ),
        pytest.param([envoy.request_body(b"", end=True)], [RequestEnd()], id="empty"),
        pytest.param(
            [envoy.request_body(b"ab"), envoy.request_trailers()], [RequestBody(b"ab"), RequestEnd()], id="trailers"
        ),
        pytest.param([envoy.request_trailers()], [RequestEnd()], id="trailers only"),
        pytest.param(
            [envoy.request_body(b"ab", end=True), envoy.request_body(b"ab", end=True)],
            [RequestBody(b"ab"), RequestEnd()],
            id="the last message twice",
        ),
    ],
)
def test_request_body_in_any_form_is_read_once(
    messages: list[pb.ProcessingRequest], events: list[SessionEvent]
) -> None:
    session = Session()
    assert received(session, envoy.request_headers(), *messages) == [HEAD, *events]


def test_get_has_ended_with_its_headers() -> None:
    head = RequestHeaders("GET", "/v1/models", "gateway", {"accept": "*/*"})
    assert received(Session(), envoy.get_request({"accept": "*/*"})) == [head, RequestEnd()]


def test_repeated_headers_are_joined() -> None:
    message = envoy.request_headers({"a": "1"})
    for name, value in (("A", b"2"), ("cookie", b"x=1"), ("cookie", b"y=2")):
        message.request_headers.headers.headers.add(key=name, raw_value=value)
    assert received(Session(), message) == [
        RequestHeaders("POST", "/v1/responses", "gateway", {"a": "1, 2", "cookie": "x=1; y=2"})
    ]


def test_header_values_that_are_not_text_survive() -> None:
    session = Session()
    message = envoy.request_headers(end=True)
    message.request_headers.headers.headers.add(key="x", raw_value=b"\xff\xfe")
    (head, _) = received(session, message)
    assert isinstance(head, RequestHeaders)
    (answer,) = session.continue_request(path=head.path, headers={**head.headers, "y": head.headers["x"]}, body=b"")
    (option,) = answer.request_headers.response.header_mutation.set_headers
    assert (option.header.key, option.header.raw_value) == ("y", b"\xff\xfe")


# ---- the request, continued


def test_continued_request_sends_headers_first_then_body_and_one_end() -> None:
    session = held(
        envoy.request_headers({"content-length": "2", "x-old": "1", "x-same": "s"}), envoy.request_body(b"in", end=True)
    )
    answers = session.continue_request(
        path="/v2", headers={"x-new": "n", "x-same": "s", "content-length": "2"}, body=b"a" * 62_001
    )
    assert said_all(answers) == [
        ("request_headers", {"x-new": "n", ":path": "/v2", "content-length": "62001"}, ["x-old"]),
        ("request_body", b"a" * 62_000, False),
        ("request_body", b"a", True),
    ]
    assert answers[0].request_headers.response.clear_route_cache


def test_unchanged_request_keeps_its_route() -> None:
    (head, _) = held().continue_request(path="/v1/responses", headers={}, body=b"in")
    assert said(head) == ("request_headers", {"content-length": "2"}, [])
    assert not head.request_headers.response.clear_route_cache


def test_request_with_trailers_ends_with_their_answer() -> None:
    session = held(envoy.request_headers(), envoy.request_body(b"in"), envoy.request_trailers())
    assert said_all(session.continue_request(path=POST[":path"], headers={}, body=b"out")) == [
        ("request_headers", {}, []),
        ("request_body", b"out", False),
        ("request_trailers",),
    ]


def test_request_without_a_body_goes_on_by_its_headers_alone() -> None:
    answers = held(envoy.get_request()).continue_request(path="/v1/models", headers={}, body=b"")
    assert said_all(answers) == [("request_headers", {}, [])]


def test_request_without_a_body_gets_one_with_its_headers() -> None:
    answers = held(envoy.get_request()).continue_request(path="/v1/models", headers={}, body=b"new")
    assert said_all(answers) == [("request_headers", {"content-length": "3"}, [], b"new")]


def test_emptied_body_still_ends() -> None:
    answers = held().continue_request(path="/v1/responses", headers={}, body=b"")
    assert said_all(answers)[1:] == [("request_body", b"", True)]


def test_request_cannot_go_on_before_it_was_read() -> None:
    session = held(envoy.request_headers())
    with pytest.raises(LocalProtocolError, match=r"^A request cannot go on: the request was read\.$"):
        session.continue_request(path="/", headers={}, body=b"")


# ---- the response, rewritten


def test_response_is_rewritten_with_another_status_and_body() -> None:
    session = continued(
        envoy.response_headers(200, {"content-length": "2", "server": "x"}), envoy.response_body(b"ok", end=True)
    )
    answers = session.start_response(418, {"content-type": "text/plain"})
    answers += session.send_body(b"tea") + session.send_body(b"pot") + session.end()
    assert said_all(answers) == [
        ("response_headers", {"content-type": "text/plain", ":status": "418"}, ["content-length", "server"]),
        ("response_body", b"tea", False),
        ("response_body", b"pot", False),
        ("response_body", b"", True),
    ]


def test_response_goes_on_long_after_the_upstream_ended() -> None:
    session = continued(envoy.response_headers(), envoy.response_body(b"x", end=True))
    session.start_response(200, {})
    assert said_all(session.send_body(b"later")) == [("response_body", b"later", False)]


def test_response_may_end_before_the_upstream_does() -> None:
    session = continued(envoy.response_headers())
    session.start_response(200, {})
    assert said_all(session.end()) == [("response_body", b"", True)]
    assert received(session, envoy.response_body(b"late"), envoy.response_trailers()) == [
        ResponseBody(b"late"),
        ResponseEnd(),
    ]


def test_response_with_trailers_ends_with_their_answer() -> None:
    session = continued(envoy.response_headers(), envoy.response_body(b"x"), envoy.response_trailers())
    session.start_response(200, {})
    assert said_all(session.send_body(b"x") + session.end()) == [
        ("response_body", b"x", False),
        ("response_trailers",),
    ]


def test_response_without_a_body_gets_one_with_its_headers() -> None:
    session = continued(envoy.response_headers(401, {"content-length": "0"}, end=True))
    answers = session.start_response(402, {}) + session.send_body(b"a") + session.send_body(b"b") + session.end()
    assert said_all(answers) == [("response_headers", {":status": "402"}, ["content-length"], b"ab")]


def test_response_without_a_body_stays_without() -> None:
    session = continued(envoy.response_headers(204, end=True))
    assert said_all(session.start_response(204, {}) + session.end()) == [("response_headers", {}, [])]


def test_response_delivered_twice_at_its_end_is_read_once() -> None:
    session = continued()
    assert received(
        session,
        envoy.response_headers(),
        envoy.response_body(b"x", end=True),
        envoy.response_body(b"x", end=True),
    ) == [ResponseHeaders(200, {}), ResponseBody(b"x"), ResponseEnd()]


# ---- replies


def test_reply_to_a_held_request_is_immediate() -> None:
    session = held()
    assert said_all(session.reply(400, {"content-type": "application/json"}, b"{}")) == [
        ("immediate_response", 400, {"content-type": "application/json"}, b"{}")
    ]
    assert session.answer is Answer.DONE


def test_reply_while_the_request_is_still_read_is_immediate() -> None:
    session = held(envoy.request_headers())
    assert session.reply(413, {}, b"")
    assert received(session, envoy.request_body(b"more"), envoy.request_body(b"", end=True)) == [
        RequestBody(b"more"),
        RequestEnd(),
    ]


def test_reply_to_a_continued_request_is_immediate_until_a_response_came() -> None:
    assert said_all(continued().reply(504, {}, b"late")) == [("immediate_response", 504, {}, b"late")]


def test_streamed_reply_to_a_held_request() -> None:
    session = held()
    answers = session.start_reply(200, {"a": "1"}) + session.send_body(b"x") + session.end()
    assert said_all(answers) == [
        ("reply_headers", {":status": "200", "a": "1"}, []),
        ("reply_body", b"x", False),
        ("reply_body", b"", True),
    ]


@pytest.mark.parametrize("body", [[], [envoy.response_body(b"x")]], ids=["headers", "body"])
def test_no_immediate_response_once_a_response_came(body: list[pb.ProcessingRequest]) -> None:
    session = continued(envoy.response_headers(), *body)
    with pytest.raises(LocalProtocolError):
        session.reply(500, {}, b"")


def test_no_streamed_reply_to_a_continued_request() -> None:
    with pytest.raises(LocalProtocolError):
        continued().start_reply(200, {})


def test_nothing_is_sent_after_the_end() -> None:
    session = held()
    session.start_reply(200, {})
    session.end()
    for illegal in ("body", "end", "reply", "start_reply", "start_response", "continue"):
        with pytest.raises(LocalProtocolError):
            answer(session, illegal)


# ---- other filters' replies walk through


def test_response_without_a_request_is_echoed() -> None:
    session = Session()
    assert received(session, envoy.response_headers(503, {"a": "1"}), envoy.response_body(b"no", end=True)) == [
        ResponseHeaders(503, {"a": "1"}),
        ResponseBody(b"no"),
        ResponseEnd(),
    ]
    assert said_all(session.echo_response() + session.send_body(b"no") + session.end()) == [
        ("response_headers", {}, []),
        ("response_body", b"no", False),
        ("response_body", b"", True),
    ]


def test_response_while_the_request_is_held_is_answered_instead_of_it() -> None:
    session = held()
    received(session, envoy.response_headers(408))
    assert not session.request_held
    with pytest.raises(LocalProtocolError):
        session.start_reply(200, {})
    assert said_all(session.echo_response()) == [("response_headers", {}, [])]


# ---- Envoy's errors


@pytest.mark.parametrize(
    "messages",
    [
        pytest.param([envoy.request_body(b"x")], id="body first"),
        pytest.param([envoy.request_headers(), envoy.request_headers()], id="headers twice"),
        pytest.param([envoy.response_body(b"x")], id="response body first"),
        pytest.param([envoy.get_request(), envoy.request_trailers()], id="trailers after the end"),
        pytest.param([envoy.response_headers(), envoy.request_headers()], id="request after its response"),
        pytest.param([pb.ProcessingRequest()], id="nothing"),
        pytest.param([pb.ProcessingRequest(response_headers=pb.HttpHeaders())], id="no status"),
        pytest.param([pb.ProcessingRequest(observability_mode=True)], id="observability mode"),
        pytest.param(
            [pb.ProcessingRequest(protocol_config=pb.ProtocolConfiguration(request_body_mode=pb.BUFFERED))],
            id="another body mode",
        ),
    ],
)
def test_illegal_message_of_envoy_is_its_protocol_error(messages: list[pb.ProcessingRequest]) -> None:
    with pytest.raises(RemoteProtocolError):
        received(Session(), *messages)


# ---- properties

ANY_MESSAGE = st.sampled_from(
    [
        envoy.request_headers(),
        envoy.get_request(),
        envoy.request_body(b"q"),
        envoy.request_body(b"", end=True),
        envoy.request_trailers(),
        envoy.response_headers(),
        envoy.response_headers(204, end=True),
        envoy.response_body(b"r"),
        envoy.response_body(b"r", end=True),
        envoy.response_trailers(),
        pb.ProcessingRequest(),
    ]
)
ANY_ANSWER = st.sampled_from(["continue", "reply", "start_reply", "start_response", "echo", "body", "end"])


def answer(session: Session, what: str) -> Messages:
    match what:
        case "continue":
            return session.continue_request(path="/", headers={"a": "1"}, body=b"body")
        case "reply":
            return session.reply(200, {}, b"whole")
        case "start_reply":
            return session.start_reply(200, {})
        case "start_response":
            return session.start_response(200, {})
        case "echo":
            return session.echo_response()
        case "body":
            return session.send_body(b"piece")
        case _:
            return session.end()


@settings(max_examples=300, deadline=None)
@given(st.lists(ANY_MESSAGE | ANY_ANSWER, max_size=14))
def test_any_order_of_messages_and_answers_is_legal_or_a_declared_error(
    steps: list[pb.ProcessingRequest | str],
) -> None:
    session = Session()
    sent: Messages = []
    for step in steps:
        try:
            if isinstance(step, str):
                sent += answer(session, step)
            else:
                session.receive(step)
        except RemoteProtocolError:
            assert not isinstance(step, str)
            break
        except LocalProtocolError:
            assert isinstance(step, str)
    check_order(sent)


CHUNKS = st.lists(st.binary(max_size=40) | st.just(b"x" * 70_000), max_size=4)
END = st.sampled_from(["with body", "after body", "trailers"])


def cut(chunks: list[bytes], end: str, *, request: bool) -> list[pb.ProcessingRequest]:
    make = envoy.request_body if request else envoy.response_body
    messages = [make(chunk) for chunk in chunks]
    if end == "with body" and chunks:
        return [*messages[:-1], make(chunks[-1], end=True)]
    if end == "trailers":
        return [*messages, envoy.request_trailers() if request else envoy.response_trailers()]
    return [*messages, make(b"", end=True)]


@settings(max_examples=100, deadline=None)
@given(CHUNKS, END, CHUNKS, END)
def test_echo_of_any_exchange_in_any_cut_keeps_every_byte(
    request: list[bytes], request_end: str, response: list[bytes], response_end: str
) -> None:
    session = Session()
    messages = [
        envoy.request_headers(),
        *cut(request, request_end, request=True),
        envoy.response_headers(),
        *cut(response, response_end, request=False),
    ]
    sent: Messages = []
    body = b""
    for message in messages:
        for event in session.receive(message):
            match event:
                case RequestBody(data):
                    body += data
                case RequestEnd():
                    sent += session.continue_request(path=POST[":path"], headers={}, body=body)
                case ResponseHeaders():
                    sent += session.echo_response()
                case ResponseBody(data):
                    sent += session.send_body(data)
                case ResponseEnd():
                    sent += session.end()
                case RequestHeaders():
                    pass
    check_order(sent)
    assert session.answer is Answer.DONE
    for kind, given_chunks in (("request_body", request), ("response_body", response)):
        out = [message[1] for message in said_all(sent) if message[0] == kind]
        assert b"".join(part for part in out if isinstance(part, bytes)) == b"".join(given_chunks)


def test_protocol_errors_have_one_base() -> None:
    assert issubclass(LocalProtocolError, ProtocolError)
    assert issubclass(RemoteProtocolError, ProtocolError)
