"""Scores of many cases as one document, by set and by fault type."""

from collections import defaultdict
from collections.abc import Callable, Sequence
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
}
"""What is counted. A None is not counted: `kind` only where the service is right, as the published figures do."""


def summarise(scores: Sequence[Score]) -> dict[str, Any]:
    """`all`, and by group; each metric as `{right, total, low, high}`; means of what it cost."""
    groups: dict[str, list[Score]] = defaultdict(list)
    for score in scores:
        groups[score.fault_type or score.expected].append(score)
    return {
        "all": _group(scores),
        "by_fault_type": {name: _group(found) for name, found in sorted(groups.items())},
    }


def _group(scores: Sequence[Score]) -> dict[str, Any]:
    number = len(scores)
    claims = sum(s.claims for s in scores)
    document: dict[str, Any] = {"cases": number}
    document |= {name: _counted([measure(s) for s in scores])._asdict() for name, measure in METRICS.items()}
    document["claims_supported"] = share(claims - sum(s.unsupported for s in scores), claims)._asdict()
    for name in ("calls", "repeated", "turns", "tokens", "seconds"):
        document[f"mean_{name}"] = round(sum(getattr(s, name) for s in scores) / number, 3) if number else 0.0
    return document


def _counted(answers: Sequence[bool | None]) -> Share:
    asked = [answer for answer in answers if answer is not None]
    return share(sum(asked), len(asked))
