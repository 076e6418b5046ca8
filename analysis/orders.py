"""Text in data that gives orders to whoever reads it: never followed, but worth telling."""

import re
from collections.abc import Mapping
from typing import Any

from opsleuth.state.canonical import canonical

_ORDER = re.compile(
    r"(?i)\b(?:ignore|disregard|forget)\b.{0,30}\b(?:rules?|instructions?|prompts?|guidelines)\b"
    r"|\bapproved by (?:the )?(?:admin|operator|sre|root|security|system)\w*\b"
    r"|\byou (?:are now|must now)\b|\bas an ai\b|\bnew (?:system )?instructions?\b"
    r"|</?(?:tool_call|system|assistant|data)>|tool_calls|\bfunction_call\b"
    r"|(?:忽略|无视).{0,12}(?:指令|规则|提示)"
)
AROUND = 60


def order_in(record: Mapping[str, Any]) -> str | None:
    """The first such passage of a record with a little around it, on one line, or None."""
    text = canonical(record)
    found = _ORDER.search(text)
    if found is None:
        return None
    return " ".join(text[max(found.start() - AROUND, 0) : found.end() + AROUND].split())
