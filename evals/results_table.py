"""A results document as a table for people."""

from collections.abc import Iterator, Mapping
from typing import Any

COUNTED = (("false_healthy", "called healthy with a cause"), ("innocent_change", "innocent changes named"))
COLUMNS = (
    ("verdict", "verdict"),
    ("top1", "top-1"),
    ("top3", "top-3"),
    ("kind", "kind"),
    ("entity", "entity"),
    ("not_blamed", "not blamed"),
    ("claims_supported", "claims"),
)
WIDTH = 12
# Results of a version that did not count this.
_NOTHING: Mapping[str, Any] = {"right": 0, "total": 0}


def format_results_table(document: Mapping[str, Any]) -> Iterator[str]:
    """Lines: one row per fault type and one for all, each share as right/total; then the intervals and the misses."""
    summary = document["summary"]
    names = [*summary["by_fault_type"], "all"]
    first = max(len(name) for name in names) + 2
    yield (
        f"{'':<{first}}{'cases':>6}"
        + "".join(f"{title:>{WIDTH}}" for _, title in COLUMNS)
        + f"{'calls':>8}{'seconds':>9}"
    )
    for name in names:
        group = summary["all"] if name == "all" else summary["by_fault_type"][name]
        shares = "".join(f"{_format_share(group.get(key) or _NOTHING):>{WIDTH}}" for key, _ in COLUMNS)
        yield f"{name:<{first}}{group['cases']:>6}{shares}{group['mean_calls']:>8.1f}{group['mean_seconds']:>9.2f}"
    yield ""
    for key, title in COLUMNS:
        found = summary["all"].get(key) or _NOTHING
        if found["total"]:
            yield (
                f"{title}: {100 * found['right'] / found['total']:.1f} % "
                f"(95 % interval {100 * found['low']:.1f} to {100 * found['high']:.1f})"
            )
    change = summary["all"].get("change", {"total": 0})
    if change["total"]:
        yield f"guilty change named, or none if there is none: {change['right']} of {change['total']}"
    for key, title in COUNTED:
        counted = summary["all"].get(key, {"total": 0})
        if counted["total"]:
            yield f"{title}: {counted['count']} of {counted['total']}"
    yield from _format_misses(document["scores"])


def _format_share(found: Mapping[str, Any]) -> str:
    return f"{found['right']}/{found['total']}" if found["total"] else "-"


def _format_misses(scores: list[Mapping[str, Any]]) -> Iterator[str]:
    missed = [
        s for s in scores if s["top1"] is False or s["kind"] is False or s["blamed"] or not s["verdict_right"]
    ]
    if missed:
        yield ""
        yield "not right:"
    for s in missed:
        yield f"  {s['case']}: expected {s['expected']}, {s['fault_type']}; said {s['verdict']} {s['answered']}"
