"""Our messages are Envoy's, byte for byte, and the generated modules are what the .proto says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from envoy_data_plane.envoy.config.core import v3 as core
from envoy_data_plane.envoy.extensions.filters.http.ext_proc import v3 as filter_config
from envoy_data_plane.envoy.service.ext_proc import v3 as theirs
from envoy_data_plane.envoy.type import v3 as types
from envoy_data_plane.google import protobuf
from google.protobuf import struct_pb2

import attache_filters
from attache_filters.extproc.wire import ext_proc_pb2 as pb

PROTO = Path("attache_filters/extproc/wire/ext_proc.proto")
SOURCE = Path(attache_filters.__file__).parent.parent


def their_header(name: str, value: bytes) -> core.HeaderValue:
    return core.HeaderValue(key=name, raw_value=value)


def our_header(name: str, value: bytes) -> pb.HeaderValue:
    return pb.HeaderValue(key=name, raw_value=value)


STRUCT = struct_pb2.Struct(fields={"k": struct_pb2.Value(string_value="v")})
THEIR_STRUCT = protobuf.Struct(fields={"k": protobuf.Value(string_value="v")})
MAP = pb.HeaderMap(headers=[our_header(":status", b"200"), pb.HeaderValue(key="a", value="b")])
THEIR_MAP = core.HeaderMap(headers=[their_header(":status", b"200"), core.HeaderValue(key="a", value="b")])
MUTATION = pb.HeaderMutation(
    set_headers=[
        pb.HeaderValueOption(
            header=our_header("x", b"\xff"),
            append_action=pb.HeaderValueOption.OVERWRITE_IF_EXISTS_OR_ADD,
            keep_empty_value=True,
        )
    ],
    remove_headers=["content-length", "y"],
)
THEIR_MUTATION = theirs.HeaderMutation(
    set_headers=[
        core.HeaderValueOption(
            header=their_header("x", b"\xff"),
            append_action=core.HeaderValueOptionHeaderAppendAction.OVERWRITE_IF_EXISTS_OR_ADD,
            keep_empty_value=True,
        )
    ],
    remove_headers=["content-length", "y"],
)
CHUNK = pb.StreamedBodyResponse(body=b"data", end_of_stream=True)
THEIR_CHUNK = theirs.StreamedBodyResponse(body=b"data", end_of_stream=True)
REPLACE = pb.CommonResponse(
    status=pb.CommonResponse.CONTINUE_AND_REPLACE,
    header_mutation=MUTATION,
    body_mutation=pb.BodyMutation(body=b"new"),
    clear_route_cache=True,
)
THEIR_REPLACE = theirs.CommonResponse(
    status=theirs.CommonResponseResponseStatus.CONTINUE_AND_REPLACE,
    header_mutation=THEIR_MUTATION,
    body_mutation=theirs.BodyMutation(body=b"new"),
    clear_route_cache=True,
)
STREAM = pb.CommonResponse(body_mutation=pb.BodyMutation(streamed_response=CHUNK))
THEIR_STREAM = theirs.CommonResponse(body_mutation=theirs.BodyMutation(streamed_response=THEIR_CHUNK))
CLEAR = pb.CommonResponse(body_mutation=pb.BodyMutation(clear_body=True))
THEIR_CLEAR = theirs.CommonResponse(body_mutation=theirs.BodyMutation(clear_body=True))
Reply, TheirReply = pb.StreamedImmediateResponse, theirs.StreamedImmediateResponse
FULL_DUPLEX = filter_config.ProcessingModeBodySendMode.FULL_DUPLEX_STREAMED

REQUESTS = {
    "request_headers": (
        pb.ProcessingRequest(
            request_headers=pb.HttpHeaders(headers=MAP, end_of_stream=True),
            metadata_context=pb.Metadata(filter_metadata={"ns": STRUCT}),
            attributes={"envoy.filters.http.ext_proc": STRUCT},
            protocol_config=pb.ProtocolConfiguration(
                request_body_mode=pb.FULL_DUPLEX_STREAMED,
                response_body_mode=pb.FULL_DUPLEX_STREAMED,
                send_body_without_waiting_for_header_response=True,
            ),
        ),
        theirs.ProcessingRequest(
            request_headers=theirs.HttpHeaders(headers=THEIR_MAP, end_of_stream=True),
            metadata_context=core.Metadata(filter_metadata={"ns": THEIR_STRUCT}),
            attributes={"envoy.filters.http.ext_proc": THEIR_STRUCT},
            protocol_config=theirs.ProtocolConfiguration(
                request_body_mode=FULL_DUPLEX,
                response_body_mode=FULL_DUPLEX,
                send_body_without_waiting_for_header_response=True,
            ),
        ),
    ),
    "response_headers": (
        pb.ProcessingRequest(response_headers=pb.HttpHeaders(headers=MAP), observability_mode=True),
        theirs.ProcessingRequest(response_headers=theirs.HttpHeaders(headers=THEIR_MAP), observability_mode=True),
    ),
    "request_body": (
        pb.ProcessingRequest(request_body=pb.HttpBody(body=b"q", end_of_stream=True)),
        theirs.ProcessingRequest(request_body=theirs.HttpBody(body=b"q", end_of_stream=True)),
    ),
    "response_body": (
        pb.ProcessingRequest(response_body=pb.HttpBody(body=b"r")),
        theirs.ProcessingRequest(response_body=theirs.HttpBody(body=b"r")),
    ),
    "request_trailers": (
        pb.ProcessingRequest(request_trailers=pb.HttpTrailers(trailers=MAP)),
        theirs.ProcessingRequest(request_trailers=theirs.HttpTrailers(trailers=THEIR_MAP)),
    ),
    "response_trailers": (
        pb.ProcessingRequest(response_trailers=pb.HttpTrailers(trailers=MAP)),
        theirs.ProcessingRequest(response_trailers=theirs.HttpTrailers(trailers=THEIR_MAP)),
    ),
}

RESPONSES = {
    "request_headers": (
        pb.ProcessingResponse(request_headers=pb.HeadersResponse(response=REPLACE), dynamic_metadata=STRUCT),
        theirs.ProcessingResponse(
            request_headers=theirs.HeadersResponse(response=THEIR_REPLACE), dynamic_metadata=THEIR_STRUCT
        ),
    ),
    "response_headers": (
        pb.ProcessingResponse(response_headers=pb.HeadersResponse(response=CLEAR)),
        theirs.ProcessingResponse(response_headers=theirs.HeadersResponse(response=THEIR_CLEAR)),
    ),
    "request_body": (
        pb.ProcessingResponse(request_body=pb.BodyResponse(response=STREAM)),
        theirs.ProcessingResponse(request_body=theirs.BodyResponse(response=THEIR_STREAM)),
    ),
    "response_body": (
        pb.ProcessingResponse(response_body=pb.BodyResponse(response=STREAM)),
        theirs.ProcessingResponse(response_body=theirs.BodyResponse(response=THEIR_STREAM)),
    ),
    "request_trailers": (
        pb.ProcessingResponse(request_trailers=pb.TrailersResponse(header_mutation=MUTATION)),
        theirs.ProcessingResponse(request_trailers=theirs.TrailersResponse(header_mutation=THEIR_MUTATION)),
    ),
    "response_trailers": (
        pb.ProcessingResponse(response_trailers=pb.TrailersResponse(header_mutation=MUTATION)),
        theirs.ProcessingResponse(response_trailers=theirs.TrailersResponse(header_mutation=THEIR_MUTATION)),
    ),
    "immediate_response": (
        pb.ProcessingResponse(
            immediate_response=pb.ImmediateResponse(
                status=pb.HttpStatus(code=413), headers=MUTATION, body=b"{}", details="why"
            )
        ),
        theirs.ProcessingResponse(
            immediate_response=theirs.ImmediateResponse(
                status=types.HttpStatus(code=types.StatusCode(413)), headers=THEIR_MUTATION, body=b"{}", details="why"
            )
        ),
    ),
    "streamed headers": (
        pb.ProcessingResponse(streamed_immediate_response=Reply(headers_response=pb.HttpHeaders(headers=MAP))),
        theirs.ProcessingResponse(
            streamed_immediate_response=TheirReply(headers_response=theirs.HttpHeaders(headers=THEIR_MAP))
        ),
    ),
    "streamed body": (
        pb.ProcessingResponse(streamed_immediate_response=Reply(body_response=CHUNK)),
        theirs.ProcessingResponse(streamed_immediate_response=TheirReply(body_response=THEIR_CHUNK)),
    ),
    "streamed trailers": (
        pb.ProcessingResponse(streamed_immediate_response=Reply(trailers_response=MAP)),
        theirs.ProcessingResponse(streamed_immediate_response=TheirReply(trailers_response=THEIR_MAP)),
    ),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_requests_are_envoys_byte_for_byte(name: str) -> None:
    ours, envoys = REQUESTS[name]
    assert ours.SerializeToString(deterministic=True) == bytes(envoys)
    assert pb.ProcessingRequest.FromString(bytes(envoys)) == ours
    assert bytes(theirs.ProcessingRequest.parse(ours.SerializeToString())) == bytes(envoys)


@pytest.mark.parametrize("name", RESPONSES)
def test_responses_are_envoys_byte_for_byte(name: str) -> None:
    ours, envoys = RESPONSES[name]
    assert ours.SerializeToString(deterministic=True) == bytes(envoys)
    assert pb.ProcessingResponse.FromString(bytes(envoys)) == ours
    assert bytes(theirs.ProcessingResponse.parse(ours.SerializeToString())) == bytes(envoys)


def test_every_field_and_enum_value_of_ours_has_envoys_number() -> None:
    numbers = {mode.name: mode.value for mode in filter_config.ProcessingModeBodySendMode}
    assert dict(pb.BodySendMode.items()) == numbers
    actions = {each.name: each.value for each in core.HeaderValueOptionHeaderAppendAction}
    assert dict(pb.HeaderValueOption.HeaderAppendAction.items()) == actions


def test_regenerating_gives_the_committed_files(tmp_path: Path) -> None:
    command = ["-m", "grpc_tools.protoc", "-I", str(SOURCE), f"--python_out={tmp_path}", f"--pyi_out={tmp_path}"]
    subprocess.run([sys.executable, *command, str(SOURCE / PROTO)], check=True, timeout=30)
    for name in ("ext_proc_pb2.py", "ext_proc_pb2.pyi"):
        committed = (SOURCE / PROTO).with_name(name)
        assert (tmp_path / PROTO).with_name(name).read_text() == committed.read_text(), f"run `make proto` for {name}"
