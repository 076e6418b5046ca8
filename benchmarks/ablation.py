"""What each kind of evidence is worth: the ranking's skill with all sources, and with one left out.

Recorded sets lose metrics, logs, traces or the topology; generated incidents lose changes, statements, events or
objects; generated clusters lose objects, events, traces, logs or changes. A case counts as right if the first suspect
has the right service and kind.
Run: python benchmarks/ablation.py INCIDENTS_DIR [PER_KIND_AND_LEVEL] [WORLDS]
`-` for INCIDENTS_DIR measures generated clusters alone; WORLDS of their kinds, drawn by the seed, are enough for a look.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from opsleuth.analysis.ranking import rank_findings, run_detectors
from opsleuth.analysis.records import Recording
from opsleuth.evals.case_sets import load_case_set
from opsleuth.evals.cases import EvalCase
from opsleuth.evals.statistics import wilson_interval
from opsleuth.scenarios.cluster.faults import CLUSTER_FAULTS
from opsleuth.scenarios.cluster.worlds import generate_world_set
from opsleuth.scenarios.generator import generate_incident_set
from opsleuth.tools.sources.case_source import CaseSource

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
CLUSTER: Mapping[str, Sequence[str]] = {
    "objects": ("objects",),
    "events": ("events",),
    "traces": ("spans", "spans_baseline"),
    "logs": ("logs", "logs_baseline"),
    "changes": ("changes",),
}
SEED = 7


def right(case: EvalCase, recording: Recording) -> bool:
    """Whether the first suspect is an accepted one."""
    ranking = rank_findings(recording, run_detectors(recording))
    first = ranking.suspects[0] if ranking.verdict == "cause_found" else None
    return first is not None and first.service in case.expected.services and first.kind in case.expected.kinds


def leave_out(recording: Recording, fields: Sequence[str]) -> Recording:
    """The recording as it is where nobody collects these."""
    absent: dict[str, Any] = dict.fromkeys(fields)
    return replace(recording, **absent)


def row(cases: Sequence[EvalCase], without: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, int]]:
    """How many cases are right with everything, then with each kind of evidence left out."""
    counts = dict.fromkeys(["all", *without], 0)
    for case in cases:
        recording = CaseSource.open(case.folder).recording()
        counts["all"] += right(case, recording)
        for name, fields in without.items():
            counts[name] += right(case, leave_out(recording, fields))
    yield from counts.items()


def show(name: str, folder: Path, without: Mapping[str, Sequence[str]]) -> None:
    cases = [case for case in load_case_set(folder) if case.expected.services]
    print(f"{name}: {len(cases)} cases with a cause")
    for left_out, count in row(cases, without):
        found = wilson_interval(count, len(cases))
        label = "all sources" if left_out == "all" else f"without {left_out}"
        print(
            f"  {label:<20}{count:>5}  {100 * found.value:5.1f} % ({100 * found.low:.1f} to {100 * found.high:.1f})"
        )


def main() -> None:
    if sys.argv[1] != "-":
        show_recorded(Path(sys.argv[1]))
        show_generated(per=int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    show_clusters(int(sys.argv[3]) if len(sys.argv) > 3 else len(CLUSTER_FAULTS))


def show_recorded(incidents: Path) -> None:
    for folder in sorted(path.parent for path in incidents.glob("*/answers.json")):
        if any(case.expected.services for case in load_case_set(folder)):
            show(folder.name, folder, RECORDED)


def show_generated(per: int) -> None:
    with TemporaryDirectory() as made:
        generate_incident_set(Path(made) / "generated", per=per, seed=SEED)
        show("generated", Path(made) / "generated", GENERATED)


def show_clusters(worlds: int) -> None:
    """One world for each of so many fault kinds, the fault being the cause."""
    kinds = sorted(Random(SEED).sample(sorted(CLUSTER_FAULTS), min(worlds, len(CLUSTER_FAULTS))))
    with TemporaryDirectory() as made:
        generate_world_set(Path(made) / "clusters", kinds=kinds, roles=("cause",), seed=SEED)
        show("clusters", Path(made) / "clusters", CLUSTER)


if __name__ == "__main__":
    main()
