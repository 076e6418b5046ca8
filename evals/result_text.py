"""Comparisons, misses and failures in plain words."""

from collections.abc import Iterator, Mapping, Sequence

from opsleuth.evals.compare import ALL, COMPARED, ChangedCase, MetricComparison, ResultsComparison
from opsleuth.evals.run_failures import FailureGroup
from opsleuth.evals.score import CaseScore
from opsleuth.state.plurals import format_count

QUIET = ("seconds",)
"""Metrics that machine load affects: reported as figures, never as better or worse."""


def describe_comparison(comparison: ResultsComparison, broken: Sequence[str] | None = None) -> Iterator[str]:
    """Lines for people. `broken` is what the gate says, None without a gate."""
    yield f"{format_count(comparison.pairs, 'case')} in both results"
    for name, cases in (("only in A", comparison.missing), ("only in B", comparison.added)):
        if cases:
            yield f"{len(cases)} {name}: {', '.join(cases[:5])}{' …' if len(cases) > 5 else ''}"
    yield ""
    moved = [m for m in comparison.metrics if m.judgement != "same"]
    still = [COMPARED[m.metric].title for m in comparison.metrics if m.tag == ALL and m.judgement == "same"]
    yield from (describe_metric(m) for m in moved if m.tag == ALL)
    if still:
        yield f"the same: {', '.join(still)}"
    by_tag = [m for m in moved if m.tag != ALL and m.metric not in QUIET and m.judgement != "noise"]
    if by_tag:
        yield from ("", "by tag:")
        yield from (f"  {m.tag}: {describe_metric(m)}" for m in by_tag)
    yield from _describe_changed_cases(comparison.changed)
    if broken is not None:
        yield ""
        yield from (f"GATE: {text}" for text in broken)
        yield "the gate holds" if not broken else "worse beyond the gate"


def describe_metric(m: MetricComparison) -> str:
    """One metric in one sentence: what it was, what it is, and whether that is more than noise."""
    metric, d = COMPARED[m.metric], m.difference
    word = {"better": "better", "worse": "worse", "noise": "within noise", "same": "the same"}[m.judgement]
    if m.metric in QUIET and m.judgement in ("better", "worse"):
        word = "faster" if m.judgement == "better" else "slower"
    if metric.share:
        figures = f"{100 * m.a:.1f} % to {100 * m.b:.1f} % of {m.cases}"
        bounds = f"{100 * d.low:+.1f} to {100 * d.high:+.1f} points"
    else:
        figures = f"{m.a:.4g} to {m.b:.4g} a case"
        bounds = f"{d.low:+.4g} to {d.high:+.4g}"
    chance = f", p = {d.p:.3f}" if d.p is not None else ""
    return f"{metric.title}: {word}, {figures} (95 % interval {bounds}{chance})"


def describe_misses(groups: Mapping[str, Sequence[CaseScore]], total: int) -> Iterator[str]:
    """The misses of an evaluation, the largest group first, each with the step at which it went wrong."""
    missed = sum(len(found) for found in groups.values())
    yield f"{missed} of {total} not right"
    for group, found in groups.items():
        yield ""
        yield f"{group}: {len(found)}"
        for score in found:
            miss = score.miss or {}
            repeat = f" ({score.repeat})" if score.repeat > 1 else ""
            yield f"  {score.case}{repeat}, {score.fault_type or score.expected}: {miss.get('step')}: {miss.get('why')}"
            yield f"    {_format_show_command(score.run, score.store)}"


def describe_failures(found: Sequence[FailureGroup]) -> Iterator[str]:
    """The failures of stored runs: what, how often, and where to look."""
    if not found:
        yield "no failure in these runs"
    for failure in found:
        yield f"{failure.count:>5}  {failure.group}: {failure.what}"
        looks = [f"{run} {f'event {seq}' if seq else ''}".strip() for run, seq in failure.where[:3]]
        yield f"       {', '.join(looks)}{' …' if failure.count > 3 else ''}"


def _describe_changed_cases(changed: Sequence[ChangedCase]) -> Iterator[str]:
    for what in ("now wrong", "now right", "other answer"):
        these = [c for c in changed if c.what == what]
        if these:
            yield from ("", f"{what}:")
        for c in these:
            repeat = f" ({c.repeat})" if c.repeat > 1 else ""
            yield f"  {c.case}{repeat}: {_format_verdict(c.a.verdict, c.a.answered)} -> {_format_verdict(c.b.verdict, c.b.answered)}"
            yield f"    A {_format_show_command(c.a.run, c.a.store)}   B {_format_show_command(c.b.run, c.b.store)}"


def _format_verdict(verdict: str, answered: str) -> str:
    return f"{verdict} {answered}".strip()


def _format_show_command(run: str, store: str) -> str:
    """The command that shows the run, if it was kept; the store's path is relative to the results file."""
    return f"opsleuth show {run} --db {store}" if store else run or "no run"
