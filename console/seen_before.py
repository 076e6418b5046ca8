"""Earlier incidents that were like this one, in a line each."""

from collections.abc import Mapping
from typing import Any

from opsleuth.console.shown_report import MISSING

_TIMES = 2
_DAY = len("2026-03-03")
_NO_CAUSE = ("", "None", MISSING)
"""How earlier versions stored that a run found no cause, and how this one does."""


def format_seen_before(entry: Mapping[str, Any]) -> str:
    """`2026-03-03: orders-db: a slow database statement; helped: rollback of orders-api; judged right; 3 times (opsleuth report RUN)`."""
    judged, cause = entry.get("judged"), _name_cause(entry.get("cause"))
    found = _name_cause(entry.get("found")) if entry.get("found") else ""
    helped, advised = entry.get("helped"), entry.get("advised")
    word = f"judged {judged}" if judged else "not judged"
    if judged == "wrong" and found and found != cause:
        word = f"judged wrong: the run blamed {found}"
    elif judged == "wrong":
        word = "judged wrong"
    parts = (
        f"{_name_day(entry.get('began'))}: {cause}",
        f"helped: {helped}" if helped else f"advised: {str(advised).rstrip('.')}" if advised else "",
        word,
        f"{entry.get('times')} times" if int(entry.get("times") or 1) >= _TIMES else "",
    )
    return f"{'; '.join(part for part in parts if part)} (opsleuth report {entry.get('run')})"


def _name_cause(cause: object) -> str:
    return "no cause found" if cause is None or str(cause) in _NO_CAUSE else str(cause)


def _name_day(began: object) -> str:
    return str(began)[:_DAY] if began and began != MISSING else "day not recorded"
