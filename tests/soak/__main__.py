"""`python -m soak`, in `tests/`: the whole soak, on each store. Exits 1 when a store does not hold what was told."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import get_args

import uvloop

from attache_core.turn.departure import OnDisconnect
from postgresql_server import running_postgresql
from soak.plan import FULL, Plan
from soak.run import Result, run_soak

STORES = ("sqlite", "postgresql")
SHOWN_FAULTS = 20


def main() -> int:
    """The exit status."""
    parser = argparse.ArgumentParser(prog="python -m soak", description=__doc__)
    parser.add_argument("--store", choices=STORES, action="append", help="this store only; may be repeated")
    parser.add_argument("--seconds", type=float, default=FULL.duration_s, help="for how long clients talk")
    parser.add_argument("--on-disconnect", choices=get_args(OnDisconnect), default=FULL.on_disconnect)
    options = parser.parse_args()
    plan = replace(FULL, duration_s=options.seconds, on_disconnect=options.on_disconnect)
    results = [_soak(store, plan) for store in options.store or STORES]
    return 1 if any(result.faults for result in results) else 0


def _soak(store: str, plan: Plan) -> Result:
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        if store == "sqlite":
            result = uvloop.run(run_soak(plan, Path(folder)))
        else:
            with running_postgresql() as server:
                result = uvloop.run(run_soak(plan, Path(folder), server))
    print(f"{store}: {plan.clients} clients, {plan.conversations} conversations, {plan.workers} workers, ", end="")
    print(f"on_disconnect {plan.on_disconnect}, ", end="")
    print(f"{plan.duration_s:g} s (all of it: {time.monotonic() - begun:.0f} s)")
    print(f"  killed: {_listed(result.killed)}")
    print(f"  told: {_listed(result.told)}")
    print(f"  stored without anybody having been told how they ended: {result.stored_unknown}")
    print(f"  faults: {len(result.faults)}")
    for fault in result.faults[:SHOWN_FAULTS]:
        print(f"    {fault}")
    return result


def _listed(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(counts.items())) or "nothing"


if __name__ == "__main__":
    sys.exit(main())
