"""Messages as Envoy sends them, for tests."""

from __future__ import annotations

from collections.abc import Mapping

from attache_filters.extproc.wire import ext_proc_pb2 as pb

POST = {":method": "POST", ":path": "/v1/responses", ":authority": "gateway"}
GET = {":method": "GET", ":path": "/v1/models", ":authority": "gateway"}


def request_headers(headers: Mapping[str, str] | None = None, *, end: bool = False) -> pb.ProcessingRequest:
    """The head of a request; `POST` and these."""
    return pb.ProcessingRequest(request_headers=_head({**POST, **(headers or {})}, end))


def get_request(headers: Mapping[str, str] | None = None) -> pb.ProcessingRequest:
    """A whole GET request."""
    return pb.ProcessingRequest(request_headers=_head({**GET, **(headers or {})}, end=True))


def request_body(data: bytes, *, end: bool = False) -> pb.ProcessingRequest:
    """Some of the request's body."""
    return pb.ProcessingRequest(request_body=pb.HttpBody(body=data, end_of_stream=end))


def request_trailers() -> pb.ProcessingRequest:
    """The end of a request that has trailers."""
    return pb.ProcessingRequest(request_trailers=pb.HttpTrailers())


def response_headers(
    status: int = 200, headers: Mapping[str, str] | None = None, *, end: bool = False
) -> pb.ProcessingRequest:
    """The head of a response."""
    return pb.ProcessingRequest(response_headers=_head({":status": str(status), **(headers or {})}, end))


def response_body(data: bytes, *, end: bool = False) -> pb.ProcessingRequest:
    """Some of the response's body."""
    return pb.ProcessingRequest(response_body=pb.HttpBody(body=data, end_of_stream=end))


def response_trailers() -> pb.ProcessingRequest:
    """The end of a response that has trailers."""
    return pb.ProcessingRequest(response_trailers=pb.HttpTrailers())


def _head(headers: Mapping[str, str], end: bool) -> pb.HttpHeaders:
    values = [pb.HeaderValue(key=name, raw_value=value.encode()) for name, value in headers.items()]
    return pb.HttpHeaders(headers=pb.HeaderMap(headers=values), end_of_stream=end)
