"""How a stored claim is called; read without the types of the state, which are slow to load."""

from collections.abc import Mapping
from typing import Any

HELD = ("holds", "verified")
"""The statuses of a claim that stands: the second is what reports of earlier versions say."""


def claim_label(claim: Mapping[str, Any]) -> str:
    """`measured`, `computed` or `inferred` for a claim that stands, else its status; claims of earlier versions were prose."""
    if claim.get("status") in HELD:
        return str(claim.get("basis") or "inferred")
    return str(claim.get("status") or "draft")


FAILED_FROM_FIRST_LINE = "failed from the first line that was read"
"""Said of a service that failed before anything was recorded: since when is not known."""
