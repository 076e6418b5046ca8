"""Earlier incidents that were like this one, in a line each."""

from collections.abc import Mapping
from typing import Any

_TIMES = 2


def format_seen_before(entry: Mapping[str, Any]) -> str:
    """`2026-03-03: orders-db: a slow database statement; helped: rollback of orders-api; judged right; 3 times (opsleuth report RUN)`."""
    judged, cause, found = entry.get("judged"), str(entry.get("cause")), str(entry.get("found") or "")
    helped, advised = entry.get("helped"), entry.get("advised")
    word = f"judged {judged}" if judged else "not judged"
    if judged == "wrong" and found and found != cause:
        word = f"judged wrong: the run blamed {found}"
    elif judged == "wrong":
        word = "judged wrong"
    parts = (
        f"{str(entry.get('began'))[:10]}: {cause}",
        f"helped: {helped}" if helped else f"advised: {str(advised).rstrip('.')}" if advised else "",
        word,
        f"{entry.get('times')} times" if int(entry.get("times") or 1) >= _TIMES else "",
    )
    return f"{'; '.join(part for part in parts if part)} (opsleuth report {entry.get('run')})"
