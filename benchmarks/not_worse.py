"""Investigate every recorded set, plain and disguised, and the built-in set; fail where fewer cases are right than kept.

Run: python benchmarks/not_worse.py [--jobs N] [--keep]. `--keep` writes benchmarks/recorded.json, which holds case ids
and what was wrong with them, nothing of the sets. The recorded incidents lie in ../shared, or where OPSLEUTH_SHARED says.
"""

import argparse
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from disguise import rename_set, shift_set

from opsleuth.evals.compare import compare_results
from opsleuth.evals.evaluation import EvalRequest, evaluate_set
from opsleuth.evals.regression_gate import list_broken_rules, load_gate
from opsleuth.evals.results_file import load_results
from opsleuth.evals.score import CaseScore

HERE = Path(__file__).parent
KEPT = HERE / "recorded.json"
RECORDED = (
    Path(os.environ.get("OPSLEUTH_SHARED", HERE.parent.parent / "shared")).resolve() / "incidents" / "dev"
)
DISGUISES = {"renamed": rename_set, "shifted": shift_set}

MEASURES = {
    "right": lambda s: s.right,
    "first": lambda s: s.top1,
    "in three": lambda s: s.top3,
    "kind": lambda s: s.kind,
    "verdict": lambda s: s.verdict_right,
    "not blamed": lambda s: not s.blamed if s.expected == "healthy" or s.blamed else None,
    "completed": lambda s: s.status == "completed",
    "supported": lambda s: not s.unsupported,
}
"""What is counted of each case; None where the key asks nothing of the kind. More is better for each of them."""

Counted = Mapping[str, Mapping[str, Any]]
"""By measure: `asked`, the number of cases that it is asked of, and `wrong`, the ids of those that fail it."""


def count(scores: Sequence[CaseScore]) -> Counted:
    """What is kept of a set's scores."""
    counted = {}
    for name, measure in MEASURES.items():
        found = {score.case: measure(score) for score in scores}
        asked = [case for case, value in found.items() if value is not None]
        counted[name] = {"asked": len(asked), "wrong": sorted(case for case in asked if not found[case])}
    return counted


def right_in(counted: Mapping[str, Any]) -> int:
    return int(counted["asked"] - len(counted["wrong"]))


@contextmanager
def prepared(source: Path, disguise: str) -> Iterator[Path]:
    """The set, or a copy of it in disguise that is gone afterwards."""
    if not disguise:
        yield source
        return
    with TemporaryDirectory(prefix="opsleuth-not-worse-") as work:
        copy = Path(work) / source.name
        DISGUISES[disguise](source, copy)
        yield copy


def measure_recorded(jobs: int) -> dict[str, Counted]:
    """What every recorded set gives now, by the name of the set and its disguise."""
    found = {}
    for key in sorted(RECORDED.glob("*/answers.json")):
        for disguise in ("", *DISGUISES):
            name = f"{key.parent.name} {disguise}".strip()
            with prepared(key.parent, disguise) as folder:
                found[name] = count(scores_of(folder, jobs, name))
    return found


def scores_of(folder: Path, jobs: int, name: str) -> Sequence[CaseScore]:
    found: list[CaseScore] = []
    evaluate_set(EvalRequest(folder, jobs=jobs), lambda score, *_: found.append(score))
    print(f"{name}: {len(found)} cases", file=sys.stderr, flush=True)
    return found


def losses(kept: Mapping[str, Counted], now: Mapping[str, Counted]) -> Iterator[str]:
    """Every count that has fallen, with the cases that are wrong now and were not."""
    for name, counted in kept.items():
        if name not in now:
            yield f"{name}: the set is not there any more"
            continue
        for measure, before in counted.items():
            after = now[name][measure]
            if right_in(after) < right_in(before):
                cases = sorted(set(after["wrong"]) - set(before["wrong"]))
                yield f"{name}: {measure} fell from {right_in(before)} to {right_in(after)} of {after['asked']}: {', '.join(cases)}"


def built_in(jobs: int) -> tuple[Counted, Counted, Sequence[str]]:
    """The built-in set as kept and as it is now, and what the gate says of the difference."""
    kept = load_results(HERE / "builtin.json")
    now = evaluate_set(EvalRequest(Path("builtin"), jobs=jobs))
    faults = list_broken_rules(load_gate(HERE / "gate.toml"), compare_results(kept, now))
    before, after = (count([CaseScore.of(score) for score in results["scores"]]) for results in (kept, now))
    return before, after, [f"the gate on the built-in set: {fault}" for fault in faults]


def table(kept: Mapping[str, Counted], now: Mapping[str, Counted]) -> Iterator[str]:
    """One line for each set: of each measure the right ones and, where it differs, what is kept."""
    yield f"{'set':<24}{'cases':>6}" + "".join(f"{name:>14}" for name in MEASURES)
    for name, counted in now.items():
        cells = (cell(kept.get(name, {}).get(measure), counted[measure]) for measure in MEASURES)
        yield f"{name:<24}{counted['verdict']['asked']:>6}" + "".join(f"{text:>14}" for text in cells)


def cell(before: Mapping[str, Any] | None, after: Mapping[str, Any]) -> str:
    if not after["asked"]:
        return "-"
    change = "" if before is None or right_in(before) == right_in(after) else f" (was {right_in(before)})"
    return f"{right_in(after)}/{after['asked']}{change}"


def keep(found: Mapping[str, Counted]) -> None:
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(counted)}" for name, counted in found.items())
    KEPT.write_text(f"{{\n{lines}\n}}\n", "utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--keep", action="store_true", help="keep the results of the recorded sets")
    asked = parser.parse_args()
    there = any(RECORDED.glob("*/answers.json"))
    if asked.keep:
        if not there:
            print(f"no recorded incidents at {RECORDED}: set OPSLEUTH_SHARED", file=sys.stderr)
            return 1
        keep(measure_recorded(asked.jobs))
        return 0
    before, after, faults = built_in(asked.jobs)
    kept: dict[str, Counted] = json.loads(KEPT.read_text("utf-8")) if there else {}
    now = measure_recorded(asked.jobs) if there else {}
    lost = [*faults, *losses(kept, now)]
    print("\n".join(table({"built in": before, **kept}, {"built in": after, **now})))
    if not there:
        print(
            f"\nNOT RUN: the recorded sets, which are not at {RECORDED}: set OPSLEUTH_SHARED to their folder"
        )
    print("\n".join(["", *(f"WORSE {text}" for text in lost)]) if lost else "\nnot worse")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
