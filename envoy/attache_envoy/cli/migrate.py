"""`attache migrate`: the store's tables, made or brought up to date, without serving."""

from __future__ import annotations

import typer

from attache_envoy.cli.gateway_options import GatewayFile, Storage, Upstream, resolve_gateway


def migrate(gateway_file: GatewayFile = None, upstream: Upstream = None, storage: Storage = None) -> None:
    """Make the store's tables, or bring them up to date: for gateways with `migrate: verify`, which change nothing."""
    # Imported here because the database toolkit takes half a second, and few other commands need it.
    from attache_core.storage.migrate import migrate as migrate_store  # noqa: PLC0415

    settings = resolve_gateway(gateway_file, upstream=upstream, storage=storage).storage
    migrate_store(settings.url.reveal(), settings)
    typer.echo("ok")
