"""What was measured on, and which versions: one line and a table, so that numbers are never without them."""

from __future__ import annotations

import os
import platform
import re
from importlib.metadata import version
from pathlib import Path

import psutil

from attache_envoy.run.envoy_binary import find_envoy, read_version

PACKAGES = ("agentic-attache", "grpcio", "protobuf", "uvloop", "orjson", "sqlalchemy", "mcp")
PEERS = Path(__file__).parent / "requirements.lock"


def machine_line() -> str:
    """Processor, usable cores, memory, kernel, and how busy it was before the run."""
    cores = len(os.sched_getaffinity(0))
    memory_gib = psutil.virtual_memory().total / 1024**3
    load = os.getloadavg()[0]
    return f"{_processor()}, {cores} cores, {memory_gib:.0f} GiB, Linux {platform.release()}, load {load:.1f} before"


def versions() -> dict[str, str]:
    """Of Python, Envoy, the packages that matter for speed, and what is measured beside them."""
    named = {package: version(package) for package in PACKAGES}
    told = read_version(find_envoy())
    number = re.search(r"/(\d+\.\d+\.\d+)", told)
    peers = dict(re.findall(r"^(agentic-api)==(\S+)", PEERS.read_text(), re.MULTILINE))
    return {"Python": platform.python_version(), "Envoy": number.group(1) if number else told, **named, **peers}


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.machine())
