"""Where the Unix sockets are, and how long their paths may be."""

from __future__ import annotations

from pathlib import Path

import pytest

from attache_core.errors import ConfigError
from attache_envoy.compile.sockets import MAX_SOCKET_PATH_BYTES, Sockets


def test_each_socket_has_a_path_of_its_own() -> None:
    sockets = Sockets(Path("/run/attache"))
    assert [sockets.admin, sockets.worker(0), sockets.worker(11)] == [
        Path("/run/attache/admin.sock"),
        Path("/run/attache/worker-0.sock"),
        Path("/run/attache/worker-11.sock"),
    ]
    segments = ["a/b", "a/b-2", "a-b", "a.b", "x" * 99, "x" * 98]
    assert len({sockets.loop(segment) for segment in segments}) == len(segments)


def test_names_of_any_length_fit_into_a_directory_of_sixty_bytes() -> None:
    path = Sockets(Path("/" + "d" * 59)).loop("responses/" + "é" * 200)
    assert len(str(path).encode()) <= MAX_SOCKET_PATH_BYTES


def test_directory_that_is_too_long_is_refused() -> None:
    directory = Path("/" + "d" * 98)
    with pytest.raises(ConfigError) as refused:
        _ = Sockets(directory).admin
    assert refused.value.message == (
        f"The path of a Unix socket may have 107 bytes; {directory}/admin.sock has 110. "
        "Choose a shorter directory for run-time files."
    )
