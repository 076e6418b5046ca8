"""Two results of the same cases, compared with each other: per metric and tag, paired, with the uncertainty in words.

A case counts only where both results have it. Several repeats of a case are one case: their mean.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Literal, NamedTuple

from opsleuth.evals.results_file import Key, read_scores, score_key
from opsleuth.evals.score import CaseScore
from opsleuth.evals.statistics import PairedDifference, bootstrap_mean, compare_paired_shares
from opsleuth.evals.summary import COSTS, COUNTS, METRICS, fault_group
from opsleuth.state.errors import UsageError

ALL = "all"
FEWEST = 5
"""Fewer cases show nothing, however alike they are."""

Measure = Callable[[CaseScore], float | None]
Judgement = Literal["same", "better", "worse", "noise"]


class ComparedMetric(NamedTuple):
    """One thing that is compared. `share` metrics count cases; the others are means over cases."""

    measure: Measure
    title: str
    higher_is_better: bool = True
    share: bool = False


def _make_cost_metric(name: str) -> ComparedMetric:
    return ComparedMetric(lambda s: getattr(s, name), name, higher_is_better=False)


COMPARED: Mapping[str, ComparedMetric] = {
    **{
        name: ComparedMetric(measure, name.replace("_", " "), share=True) for name, measure in METRICS.items()
    },
    **{
        name: ComparedMetric(measure, name.replace("_", " "), higher_is_better=False)
        for name, measure in COUNTS.items()
    },
    "partial": ComparedMetric(lambda s: s.partial, "partial credit"),
    "advice": ComparedMetric(lambda s: s.advice, "advice"),
    "claims_supported": ComparedMetric(
        lambda s: 1 - s.unsupported / s.claims if s.claims else None, "claims supported"
    ),
    **{name: _make_cost_metric(name) for name in COSTS},
    "cost": ComparedMetric(lambda s: float(s.cost), "cost in USD", higher_is_better=False),
}
"""What is compared, by the name that a gate uses."""


@dataclass(frozen=True, slots=True)
class MetricComparison:
    """One metric over one group of cases: the mean of A and of B, and their difference."""

    metric: str
    tag: str
    cases: int
    a: float
    b: float
    difference: PairedDifference

    @property
    def judgement(self) -> Judgement:
        """In which way B differs, if it does beyond what chance would do."""
        if self.a == self.b and not self.difference.value:
            return "same"
        if not self.difference.beyond_noise or self.cases < FEWEST:
            return "noise"
        return "better" if (self.difference.value > 0) == COMPARED[self.metric].higher_is_better else "worse"

    def to_json(self) -> dict[str, Any]:
        return {
            "metric": self.metric,
            "tag": self.tag,
            "cases": self.cases,
            "a": round(self.a, 4),
            "b": round(self.b, 4),
            **{k: v if v is None else round(v, 4) for k, v in self.difference._asdict().items()},
            "judgement": self.judgement,
        }


@dataclass(frozen=True, slots=True)
class ChangedCase:
    """A case that is right in one result alone, or is answered differently, and where both runs are."""

    case: str
    repeat: int
    what: Literal["now right", "now wrong", "other answer"]
    a: CaseScore
    b: CaseScore


@dataclass(frozen=True, slots=True)
class ResultsComparison:
    """All of it. `missing` cases are only in A, `added` only in B."""

    metrics: Sequence[MetricComparison]
    changed: Sequence[ChangedCase]
    missing: Sequence[str]
    added: Sequence[str]
    pairs: int

    def find(self, metric: str, tag: str = ALL) -> MetricComparison | None:
        return next((m for m in self.metrics if (m.metric, m.tag) == (metric, tag)), None)


def compare_results(a: Mapping[str, Any], b: Mapping[str, Any]) -> ResultsComparison:
    """Compare two results documents. Raises UsageError where they have no case in common."""
    first, second = _index_scores_by_key(a), _index_scores_by_key(b)
    both = [key for key in first if key in second]
    if not both:
        raise UsageError("the two results have no case in common: compare two results of one set")
    pairs = [(first[key], second[key]) for key in both]
    return ResultsComparison(
        metrics=[
            m for tag, found in _group_pairs_by_tag(pairs).items() for m in _compare_metrics(tag, found)
        ],
        changed=list(_find_changed_cases(pairs)),
        missing=[_format_case_name(key) for key in first if key not in second],
        added=[_format_case_name(key) for key in second if key not in first],
        pairs=len(pairs),
    )


Pair = tuple[CaseScore, CaseScore]


def _index_scores_by_key(results: Mapping[str, Any]) -> dict[Key, CaseScore]:
    return {score_key(score): score for score in read_scores(results)}


def _format_case_name(key: Key) -> str:
    return f"{key[1]} ({key[2]})" if key[2] > 1 else key[1]


def _group_pairs_by_tag(pairs: Sequence[Pair]) -> dict[str, list[Pair]]:
    """All pairs, then those of each set, fault type and tag, where that is not all of them again."""
    groups: dict[str, list[Pair]] = defaultdict(list)
    for pair in pairs:
        for tag in dict.fromkeys((pair[0].set, fault_group(pair[0]), *pair[0].tags)):
            groups[tag].append(pair)
    return {ALL: list(pairs)} | {t: found for t, found in sorted(groups.items()) if len(found) < len(pairs)}


def _compare_metrics(tag: str, pairs: Sequence[Pair]) -> Iterator[MetricComparison]:
    for name, metric in COMPARED.items():
        values = _average_repeats(metric.measure, pairs)
        if values:
            before, after = [v[0] for v in values], [v[1] for v in values]
            yield MetricComparison(
                name, tag, len(values), fmean(before), fmean(after), _measure_difference(metric, values)
            )


def _average_repeats(measure: Measure, pairs: Sequence[Pair]) -> list[tuple[float, float]]:
    """The mean of each case over its repeats, in A and in B; cases without a value on either side are left out."""
    found: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    for a, b in pairs:
        before, after = measure(a), measure(b)
        if before is not None and after is not None:
            found[a.set, a.case].append((float(before), float(after)))
    return [(fmean(v[0] for v in values), fmean(v[1] for v in values)) for values in found.values()]


def _measure_difference(metric: ComparedMetric, values: Sequence[tuple[float, float]]) -> PairedDifference:
    if metric.share and all(v in (0.0, 1.0) for pair in values for v in pair):
        return compare_paired_shares(
            sum(a > b for a, b in values), sum(b > a for a, b in values), len(values)
        )
    return bootstrap_mean([b - a for a, b in values])


def _find_changed_cases(pairs: Sequence[Pair]) -> Iterator[ChangedCase]:
    for a, b in pairs:
        if a.right != b.right:
            yield ChangedCase(a.case, a.repeat, "now right" if b.right else "now wrong", a, b)
        elif (a.verdict, a.answered) != (b.verdict, b.answered):
            yield ChangedCase(a.case, a.repeat, "other answer", a, b)
