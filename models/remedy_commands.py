"""Commands that a person can copy: the way back to the release before, and the index that a statement lacks."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

Change = Mapping[str, Any]

_FROM_VERSION = re.compile(r"\bfrom (v?\d+(?:\.\d+)+(?:[-+.][\w.]+)?)(?=[\s),;:]|$)")
_DNS_LABEL = re.compile(r"[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?")
_SELECTED = re.compile(
    r"\bFROM\s+(?P<table>[\w.]+)(?:\s+(?:AS\s+)?(?!WHERE\b)\w+)?\s+WHERE\s+(?P<tests>.+?)"
    r"(?:\s+(?:GROUP|ORDER|LIMIT|HAVING|FOR|OFFSET)\b|;|…|$)",
    re.IGNORECASE | re.DOTALL,
)
_PLACEHOLDER = r"(?:\$\d+|\?|:\w+|%s|%\(\w+\)s|'[^']*'|\d+)"
_EQUALITY = re.compile(
    rf"^(?:(?P<call>lower|upper)\(\s*)?(?:\w+\.)?(?P<column>[a-z_]\w*)\s*\)?\s*=\s*(?:(?:lower|upper)\(\s*)?{_PLACEHOLDER}\s*\)?$",
    re.IGNORECASE,
)
_MOST_COLUMNS = 3


def find_previous_version(change: Change, listed: Sequence[Change]) -> str | None:
    """The version that ran before the change: as its summary says, else that of the deploy before it in `listed`."""
    if found := _FROM_VERSION.search(str(change.get("summary") or "")):
        return found[1]
    at = str(change.get("at") or "")
    earlier = [
        row
        for row in listed
        if row.get("service") == change.get("service")
        and row.get("kind") == "deploy"
        and row.get("version")
        and str(row.get("time") or "") < at
    ]
    earlier.sort(key=lambda row: str(row["time"]))
    return str(earlier[-1]["version"]) if earlier else None


def build_rollout_undo(service: str) -> str | None:
    """`kubectl rollout undo deployment/orders-api`; None for a name that no Deployment can have."""
    return f"kubectl rollout undo deployment/{service}" if _DNS_LABEL.fullmatch(service) else None


def build_index_statement(statement: str) -> str | None:
    """`CREATE INDEX CONCURRENTLY ON orders (lower(customer_email), status)` for a look-up by equality.

    None where the statement joins, or where what it compares is not plain columns with values.
    """
    flat = " ".join(statement.split())
    found = _SELECTED.search(flat)
    if found is None or re.search(r"\bJOIN\b|\bOR\b|\bUNION\b", flat, re.IGNORECASE):
        return None
    tests = re.split(r"\s+AND\s+", found["tests"], flags=re.IGNORECASE)
    columns = [_index_column(test.strip()) for test in tests]
    known = [column for column in columns if column][:_MOST_COLUMNS]
    if not known:
        return None
    return f"CREATE INDEX CONCURRENTLY ON {found['table']} ({', '.join(known)});"


def _index_column(test: str) -> str | None:
    found = _EQUALITY.match(test)
    if found is None:
        return None
    return f"{found['call'].lower()}({found['column']})" if found["call"] else found["column"]
