"""What each kind of evidence is worth: the ranking's skill with all sources, and with one left out.

Recorded sets lose metrics, logs, traces or the topology; generated incidents lose changes, statements, events or
objects. A case counts as right if the first suspect has the right service and kind.
Run: python benchmarks/ablation.py INCIDENTS_DIR [PER_KIND_AND_LEVEL]
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from opsleuth.analysis.ranking import detect, rank
from opsleuth.analysis.records import Recording
from opsleuth.evals.cases import Case, load_set
from opsleuth.evals.statistics import share
from opsleuth.scenarios.generator import generate_set
from opsleuth.tools.sources.case import CaseFolder

RECORDED: Mapping[str, Sequence[str]] = {
    "metrics": ("metrics", "metrics_baseline"),
    "logs": ("logs", "logs_baseline", "patterns"),
    "traces": ("spans", "spans_baseline", "span_stats", "edges"),
    "topology": ("topology",),
}
GENERATED: Mapping[str, Sequence[str]] = {
    "changes": ("changes",),
    "statements": ("statements",),
    "events": ("events",),
    "objects": ("objects",),
}
SEED = 7


def right(case: Case, recording: Recording) -> bool:
    """Whether the first suspect is an accepted one."""
    ranking = rank(recording, detect(recording))
    first = ranking.suspects[0] if ranking.verdict == "cause_found" else None
    return first is not None and first.service in case.expected.services and first.kind in case.expected.kinds


def row(cases: Sequence[Case], without: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, int]]:
    """How many cases are right with everything, then with each kind of evidence left out."""
    counts = dict.fromkeys(["all", *without], 0)
    for case in cases:
        recording = CaseFolder.open(case.folder).recording()
        counts["all"] += right(case, recording)
        for name, fields in without.items():
            counts[name] += right(case, replace(recording, **dict.fromkeys(fields)))
    yield from counts.items()


def show(name: str, folder: Path, without: Mapping[str, Sequence[str]]) -> None:
    cases = [case for case in load_set(folder) if case.expected.services]
    print(f"{name}: {len(cases)} cases with a cause")
    for left_out, count in row(cases, without):
        found = share(count, len(cases))
        label = "all sources" if left_out == "all" else f"without {left_out}"
        print(
            f"  {label:<20}{count:>5}  {100 * found.value:5.1f} % ({100 * found.low:.1f} to {100 * found.high:.1f})"
        )


def main() -> None:
    incidents = Path(sys.argv[1])
    for folder in sorted(path.parent for path in incidents.glob("*/answers.json")):
        if any(case.expected.services for case in load_set(folder)):
            show(folder.name, folder, RECORDED)
    with TemporaryDirectory() as made:
        generate_set(Path(made) / "generated", per=int(sys.argv[2]) if len(sys.argv) > 2 else 1, seed=SEED)
        show("generated", Path(made) / "generated", GENERATED)


if __name__ == "__main__":
    main()
