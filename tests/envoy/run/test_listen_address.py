"""Whether an address is free, and how a client writes it."""

from __future__ import annotations

import socket

import pytest

from attache_core.errors import ConfigError
from attache_envoy.gateway.model import Address
from attache_envoy.run.listen_address import ensure_free, url_of


def test_a_port_that_is_in_use_is_refused_even_when_it_is_shared() -> None:
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError) as caught:
            ensure_free(Address("127.0.0.1", port))
    assert caught.value.message == (
        f"Cannot listen on 127.0.0.1:{port}: Address already in use. Choose another `listen` (--listen HOST:PORT)."
    )
    ensure_free(Address("127.0.0.1", port))


def test_an_address_of_another_machine_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"Cannot listen on 192\.0\.2\.1:8080: Cannot assign requested address"):
        ensure_free(Address("192.0.2.1", 8080))


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:80"),
        ("0.0.0.0", "http://127.0.0.1:80"),
        ("::1", "http://[::1]:80"),
        ("::", "http://[::1]:80"),
        ("192.0.2.1", "http://192.0.2.1:80"),
    ],
)
def test_a_url_is_one_that_a_client_here_can_use(host: str, url: str) -> None:
    assert url_of(host, 80) == url
