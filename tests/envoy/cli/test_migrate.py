"""`attache migrate`, and the gateways that leave the schema to it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from attache_core.storage.migrate import verify
from attache_process import Finished

Attache = Callable[..., Finished]

FILE = """\
upstream: http://127.0.0.1:9
listen: 127.0.0.1:0
storage: {url: "${STORE}", migrate: verify}
"""


def test_gateway_that_only_verifies_starts_after_migrate_only(
    attache: Attache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gateway.yaml").write_text(FILE)
    (tmp_path / "attache.db").touch()
    monkeypatch.setenv("STORE", f"sqlite:///{tmp_path}/attache.db")

    refused = attache("up")
    assert (refused.exit_code, refused.stderr) == (
        2,
        f"storage: {tmp_path}/attache.db has no tables yet; run `attache migrate`, or set `migrate: apply`\n",
    )

    for _ in range(2):
        done = attache("migrate")
        assert (done.exit_code, done.stdout, done.stderr) == (0, "ok\n", "")
    verify(f"sqlite:///{tmp_path}/attache.db")


def test_password_of_the_store_is_not_printed(
    attache: Attache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unused_tcp_port: int
) -> None:
    (tmp_path / "gateway.yaml").write_text(FILE)
    store = f"postgresql://attache:canary-7f3a@127.0.0.1:{unused_tcp_port}/attache"
    monkeypatch.setenv("STORE", store)

    expanded = attache("render", "--expanded")
    assert yaml.safe_load(expanded.stdout)["storage"]["url"] == store.replace("canary-7f3a", "[redacted]")
    for command in ("render", "validate", "up", "migrate"):
        done = attache(command)
        assert "canary" not in done.stdout + done.stderr
    assert done.exit_code == 2
    assert done.stderr.startswith(f"storage: the database attache at 127.0.0.1:{unused_tcp_port} cannot be used")
