"""Generated clusters: causes found, innocent neighbours blamed, healthy clusters blamed, by the ranking without a model.

    python benchmarks/cluster_worlds.py SEED [SEED ...] [--role cause] [--kinds 40]

Every fault kind in each role, once per seed. Wrong ones are listed, so that a seed that was looked into is no
measurement any more: take another one.
"""

import argparse
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from opsleuth.analysis.cluster.entities import objects_behind
from opsleuth.analysis.ranking import rank_findings, run_detectors
from opsleuth.evals.case_sets import load_case_set
from opsleuth.evals.cases import EvalCase
from opsleuth.evals.score import fits_entity
from opsleuth.evals.statistics import wilson_interval
from opsleuth.scenarios.cluster.faults import CLUSTER_FAULTS
from opsleuth.scenarios.cluster.worlds import WORLD_ROLES, generate_world_set
from opsleuth.tools.sources.case_source import CaseSource


class WorldOutcome(NamedTuple):
    """What a world was asked for, whether it was met, and what was answered instead."""

    figure: str
    is_met: bool
    world: str = ""


def judge_world(role: str, case: EvalCase) -> Iterator[WorldOutcome]:
    """The figures of one world."""
    recording = CaseSource.open(case.folder).recording()
    ranking = rank_findings(recording, run_detectors(recording))
    first = ranking.suspects[0] if ranking.verdict == "cause_found" and ranking.suspects else None
    key = case.expected
    named = f"{role} {key.fault_type}: {ranking.verdict}, {first.service if first else None}, {first.kind if first else None}"
    if role == "healthy":
        yield WorldOutcome("healthy: blames somebody", first is not None, named)
        yield WorldOutcome("healthy: called healthy", ranking.verdict == "healthy")
        return
    service = first is not None and first.service in key.services
    right = service and first is not None and first.kind in key.kinds
    if role == "neighbour":
        blamed = first is not None and first.service in key.must_not_blame
        yield WorldOutcome("neighbour: blames the innocent", blamed, named)
    else:
        yield WorldOutcome(f"{role}: service", service)
        found = objects_behind([first], recording).get((first.service, first.kind)) if first else None
        entity = found.ref._asdict() if found else None
        met = any(fits_entity(accepted, entity) for accepted in key.entities)
        yield WorldOutcome(
            f"{role}: entity", met, f"{named}, {found.ref if found else None} for {key.entities}"
        )
        if met:
            yield WorldOutcome(
                f"{role}: command that undoes it", bool(found and found.undo), f"{named}, {found}"
            )
    yield WorldOutcome(f"{role}: service and kind", right, named)


def measure_seed(seed: int, roles: list[str], kinds: list[str]) -> Iterator[WorldOutcome]:
    for role in roles:
        with TemporaryDirectory() as folder:
            generate_world_set(Path(folder), kinds=kinds, roles=[role], seed=seed)
            for case in load_case_set(Path(folder)):
                yield from judge_world(role, case)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("seeds", type=int, nargs="+")
    parser.add_argument("--role", action="append", choices=WORLD_ROLES)
    parser.add_argument("--kinds", type=int, default=len(CLUSTER_FAULTS))
    options = parser.parse_args()
    met, all_of = Counter[str](), Counter[str]()
    for seed in options.seeds:
        for outcome in measure_seed(
            seed, options.role or list(WORLD_ROLES), list(CLUSTER_FAULTS)[: options.kinds]
        ):
            met[outcome.figure] += outcome.is_met
            all_of[outcome.figure] += 1
            if outcome.world and outcome.is_met == ("blames" in outcome.figure):
                print(f"seed {seed}: {outcome.figure}: {outcome.world}", flush=True)
    for figure, count in sorted(all_of.items()):
        found = wilson_interval(met[figure], count)
        print(
            f"| {figure} | {met[figure]} of {count} | {met[figure] / count:.1%} ({found.low:.1%} to {found.high:.1%}) |"
        )


if __name__ == "__main__":
    main()
