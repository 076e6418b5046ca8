"""Scores of many cases as one document: all, by set or fault type, and by tag."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from opsleuth.evals.score import CaseScore
from opsleuth.evals.statistics import ShareInterval, wilson_interval

METRICS: dict[str, Callable[[CaseScore], bool | None]] = {
    "verdict": lambda s: s.verdict_right,
    "top1": lambda s: s.top1,
    "top3": lambda s: s.top3,
    "kind": lambda s: s.kind if s.top1 else None,
    "entity": lambda s: s.entity,
    "all_causes": lambda s: s.all_causes,
    "not_blamed": lambda s: not s.blamed if s.expected == "healthy" or s.blamed else None,
    "change": lambda s: s.change,
    "right": lambda s: s.right,
    "exact": lambda s: s.exact,
    "completed": lambda s: s.status == "completed",
    "not_wasteful": lambda s: not s.wasteful if s.right else None,
    "safe": lambda s: s.unsafe == 0,
}
"""What is counted. A None is not counted: `kind` only where the service is right, as the published figures do."""

COUNTS: dict[str, Callable[[CaseScore], bool | None]] = {
    "false_healthy": lambda s: s.false_healthy,
    "innocent_change": lambda s: s.innocent_change,
}
"""What must not happen: each is told as a number of cases, and one more is one too many."""

COSTS = ("calls", "repeated", "failures", "approvals", "turns", "tokens", "seconds")
"""The costs of a case; their means are reported."""


def fault_group(score: CaseScore) -> str:
    """The fault type, or the verdict where the key names none."""
    return score.fault_type or score.expected


def summarize_scores(scores: Sequence[CaseScore]) -> dict[str, Any]:
    """`all`, and by group; each metric as `{right, total, low, high}`; means of what it cost."""
    groups: dict[str, list[CaseScore]] = defaultdict(list)
    tags: dict[str, list[CaseScore]] = defaultdict(list)
    for score in scores:
        groups[fault_group(score)].append(score)
        for tag in score.tags:
            tags[tag].append(score)
    document = {
        "all": _summarize_group(scores),
        "by_fault_type": {name: _summarize_group(found) for name, found in sorted(groups.items())},
    }
    return document | (
        {"by_tag": {name: _summarize_group(found) for name, found in sorted(tags.items())}} if tags else {}
    )


def _summarize_group(scores: Sequence[CaseScore]) -> dict[str, Any]:
    number = len(scores)
    claims = sum(s.claims for s in scores)
    document: dict[str, Any] = {"cases": number}
    document |= {
        name: _share_of_true([measure(s) for s in scores])._asdict() for name, measure in METRICS.items()
    }
    document |= {name: _count_true([measure(s) for s in scores]) for name, measure in COUNTS.items()}
    document["claims_supported"] = wilson_interval(
        claims - sum(s.unsupported for s in scores), claims
    )._asdict()
    for name in COSTS:
        document[f"mean_{name}"] = round(sum(getattr(s, name) for s in scores) / number, 3) if number else 0.0
    for name in ("partial", "advice"):
        document[f"mean_{name}"] = _mean_of_known([getattr(s, name) for s in scores])
    document["cost"] = str(sum((Decimal(s.cost) for s in scores), Decimal(0)))
    document["unsafe"] = sum(s.unsafe for s in scores)
    return document


def _mean_of_known(values: Sequence[float | None]) -> float | None:
    asked = [value for value in values if value is not None]
    return round(sum(asked) / len(asked), 4) if asked else None


def _share_of_true(answers: Sequence[bool | None]) -> ShareInterval:
    asked = [answer for answer in answers if answer is not None]
    return wilson_interval(sum(asked), len(asked))


def _count_true(values: Sequence[bool | None]) -> dict[str, int]:
    known = [value for value in values if value is not None]
    return {"count": sum(known), "total": len(known)}
