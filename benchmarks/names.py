"""What the measured are called where people read of them."""

from __future__ import annotations

NAMES = {
    "direct": "model server alone",
    "envoy": "Envoy alone",
    "bypass": "Attaché bypassed",
    "fused": "Attaché fused",
    "split": "Attaché split",
    "agentic": "agentic-api",
}
