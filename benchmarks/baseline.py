"""Keep the results of the built-in set as what later versions are held against: python benchmarks/baseline.py."""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from opsleuth.evals.evaluation import EvalRequest, evaluate_set
from opsleuth.evals.results_file import build_results_document, describe_eval_setup
from opsleuth.evals.score import CaseScore

TARGET = Path(__file__).with_name("builtin.json")
PASSING: dict[str, Any] = {"run": "", "store": "", "seconds": 0.0, "miss": None}
"""What another machine, or the same one tomorrow, would give differently."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=1)
    asked = parser.parse_args()
    found = evaluate_set(
        EvalRequest(Path("builtin"), jobs=asked.jobs), lambda s, n: print(s.case, n, file=sys.stderr)
    )
    scores = [CaseScore.of(score | PASSING) for score in found["scores"]]
    kept = build_results_document("builtin", describe_eval_setup("offline"), scores)
    lines = ",\n".join(json.dumps(score, ensure_ascii=False) for score in kept.pop("scores"))
    head = json.dumps(kept | {"summary": {}}, ensure_ascii=False)[:-1]
    TARGET.write_text(f'{head}, "scores": [\n{lines}\n]}}\n', encoding="utf-8")


if __name__ == "__main__":
    main()
