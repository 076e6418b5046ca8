"""How often whole investigations without a model are right: recorded sets, generated incidents, healthy worlds.

Every share with its 95 % interval, generated incidents by the strength of the fault.
Run: python benchmarks/skill.py INCIDENTS_DIR [PER_KIND_AND_LEVEL [SEED [HEALTHY]]]
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from opsleuth.evals.evaluation import EvalRequest, evaluate_set
from opsleuth.evals.score import CaseScore
from opsleuth.evals.statistics import wilson_interval
from opsleuth.scenarios.generator import KINDS, LEVELS, generate_incident_set

DEFAULTS = (5, 2, 40)
FAULTS = [kind for kind in KINDS if kind != "healthy"]


def scores(folder: Path) -> Sequence[CaseScore]:
    """Investigate every case of a set."""
    found: list[CaseScore] = []
    evaluate_set(EvalRequest(folder, jobs=2), lambda score, *_: found.append(score))
    return found


def line(name: str, right: Sequence[bool]) -> None:
    found = wilson_interval(sum(right), len(right))
    print(
        f"  {name:<28}{found.right:>4}/{found.total:<5}{100 * found.value:5.1f} % ({100 * found.low:.1f} to {100 * found.high:.1f})"
    )


def show(name: str, results: Sequence[CaseScore]) -> None:
    print(f"{name}: {len(results)} cases, mean {sum(s.calls for s in results) / len(results):.1f} calls")
    caused = [s for s in results if s.top1 is not None]
    healthy = [s for s in results if s.expected == "healthy"]
    claims = sum(s.claims for s in results)
    if caused:
        line("right service first", [bool(s.top1) for s in caused])
        line("right service in the first 3", [bool(s.top3) for s in caused])
        line("right kind, where found", [bool(s.kind) for s in caused if s.top1])
    if healthy:
        line("healthy and not blamed", [not s.blamed for s in healthy])
    line("claims supported", [place >= sum(s.unsupported for s in results) for place in range(claims)])


def main() -> None:
    incidents = Path(sys.argv[1])
    given = [int(word) for word in sys.argv[2:]]
    per, seed, healthy = [*given, *DEFAULTS[len(given) :]]
    for folder in sorted(path.parent for path in incidents.glob("*/answers.json")):
        show(folder.name, scores(folder))
    with TemporaryDirectory() as made:
        for level in LEVELS:
            folder = Path(made) / level
            generate_incident_set(folder, per=per, seed=seed, kinds=FAULTS, levels=[level])
            show(f"generated, {level} ({LEVELS[level]:g} spreads), seed {seed}", scores(folder))
        generate_incident_set(
            Path(made) / "healthy", per=healthy, seed=seed, kinds=["healthy"], levels=["middle"]
        )
        show("generated, healthy", scores(Path(made) / "healthy"))


if __name__ == "__main__":
    main()
