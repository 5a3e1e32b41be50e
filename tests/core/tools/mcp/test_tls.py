"""TLS to an address that was resolved beforehand still proves that the server is the one that the URL names."""

from __future__ import annotations

import asyncio
import datetime as dt
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from attache_core.http1 import Http1Request
from attache_core.tools.mcp.failure import McpServerError
from attache_core.tools.mcp.server import McpServer
from attache_core.tools.mcp.servers import open_mcp_servers
from attache_core.tools.mcp.settings import McpSettings
from attache_core.tools.outbound.pinned_pool import pinned_pool
from attache_core.tools.outbound.policy import Endpoint

SETTINGS = McpSettings(allow_private_addresses=True, connect_timeout_s=5)


def write_certificate(host: str, path: Path) -> Path:
    """A self-signed certificate of `host`, with its key, as one PEM file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    path.write_bytes(certificate.public_bytes(pem) + key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain))
    return path


@asynccontextmanager
async def teapot(certificate: Path, asked_for: list[str | None]) -> AsyncIterator[int]:
    """A TLS server that answers every request with 418 and notes which name the client asked for."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate)
    tls.sni_callback = lambda _socket, name, _context: asked_for.append(name)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 418 Teapot\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0, ssl=tls) as server:
        yield server.sockets[0].getsockname()[1]


async def failure_at(port: int) -> str:
    async with asyncio.timeout(5), open_mcp_servers(SETTINGS) as mcp:
        with pytest.raises(McpServerError) as raised:
            await mcp.list_tools(McpServer(f"https://localhost:{port}/mcp"))
    return raised.value.message


async def test_server_proves_to_be_the_one_that_the_url_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    certificate, asked_for = write_certificate("localhost", tmp_path / "localhost.pem"), list[str | None]()
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    async with teapot(certificate, asked_for) as port:
        assert await failure_at(port) == "The MCP server answered with HTTP status 418."
    assert set(asked_for) == {"localhost"}


async def status_at(port: int) -> int:
    tls = httpx2.create_ssl_context()
    endpoint = Endpoint("https", "localhost", port, ("127.0.0.1",))
    pool = pinned_pool(endpoint, tls, connect_timeout_s=5, max_idle=1, idle_s=1)
    async with asyncio.timeout(5):
        return (await pool.send(Http1Request("POST", "/mcp", {"host": "localhost"}))).status


async def test_calls_ask_for_the_same_name_and_take_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("localhost", "elsewhere.test")
    right, wrong = (write_certificate(name, tmp_path / f"{name}.pem") for name in names)
    asked_for: list[str | None] = []
    monkeypatch.setenv("SSL_CERT_FILE", str(right))
    async with teapot(right, asked_for) as port:
        assert await status_at(port) == 418
    monkeypatch.setenv("SSL_CERT_FILE", str(wrong))
    async with teapot(wrong, asked_for) as port:
        with pytest.raises(ssl.SSLCertVerificationError):
            await status_at(port)
    assert asked_for == ["localhost", "localhost"]


async def test_server_with_another_name_is_not_talked_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    certificate = write_certificate("elsewhere.test", tmp_path / "elsewhere.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    async with teapot(certificate, []) as port:
        assert await failure_at(port) == "The MCP server cannot be reached."
