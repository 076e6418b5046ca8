"""Scores of many cases as one document: all, by set or fault type, and by tag."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from opsleuth.evals.score import Score
from opsleuth.evals.statistics import Share, share

METRICS: dict[str, Callable[[Score], bool | None]] = {
    "verdict": lambda s: s.verdict_right,
    "top1": lambda s: s.top1,
    "top3": lambda s: s.top3,
    "kind": lambda s: s.kind if s.top1 else None,
    "all_causes": lambda s: s.all_causes,
    "not_blamed": lambda s: not s.blamed if s.expected == "healthy" or s.blamed else None,
    "right": lambda s: s.right,
    "exact": lambda s: s.exact,
    "completed": lambda s: s.status == "completed",
    "not_wasteful": lambda s: not s.wasteful if s.right else None,
    "safe": lambda s: s.unsafe == 0,
}
"""What is counted. A None is not counted: `kind` only where the service is right, as the published figures do."""

COSTS = ("calls", "repeated", "failures", "approvals", "turns", "tokens", "seconds")
"""What a case costs; the mean of each is told."""


def group_of(score: Score) -> str:
    """The fault type, or the verdict where the key names none."""
    return score.fault_type or score.expected


def summarise(scores: Sequence[Score]) -> dict[str, Any]:
    """`all`, and by group; each metric as `{right, total, low, high}`; means of what it cost."""
    groups: dict[str, list[Score]] = defaultdict(list)
    tags: dict[str, list[Score]] = defaultdict(list)
    for score in scores:
        groups[group_of(score)].append(score)
        for tag in score.tags:
            tags[tag].append(score)
    document = {
        "all": _group(scores),
        "by_fault_type": {name: _group(found) for name, found in sorted(groups.items())},
    }
    return document | (
        {"by_tag": {name: _group(found) for name, found in sorted(tags.items())}} if tags else {}
    )


def _group(scores: Sequence[Score]) -> dict[str, Any]:
    number = len(scores)
    claims = sum(s.claims for s in scores)
    document: dict[str, Any] = {"cases": number}
    document |= {name: _counted([measure(s) for s in scores])._asdict() for name, measure in METRICS.items()}
    document["claims_supported"] = share(claims - sum(s.unsupported for s in scores), claims)._asdict()
    for name in COSTS:
        document[f"mean_{name}"] = round(sum(getattr(s, name) for s in scores) / number, 3) if number else 0.0
    for name in ("partial", "advice"):
        document[f"mean_{name}"] = _mean([getattr(s, name) for s in scores])
    document["cost"] = str(sum((Decimal(s.cost) for s in scores), Decimal(0)))
    document["unsafe"] = sum(s.unsafe for s in scores)
    return document


def _mean(values: Sequence[float | None]) -> float | None:
    asked = [value for value in values if value is not None]
    return round(sum(asked) / len(asked), 4) if asked else None


def _counted(answers: Sequence[bool | None]) -> Share:
    asked = [answer for answer in answers if answer is not None]
    return share(sum(asked), len(asked))
