"""`opsleuth eval run`: progress on stderr, the table or the document on stdout."""

import json
import sys
from pathlib import Path

from opsleuth.evals.run import EvalRequest, evaluate
from opsleuth.evals.score import Score
from opsleuth.evals.table import table


def run(
    folder: Path, key: Path | None, planner: str, jobs: int, output: Path | None, *, as_json: bool
) -> int:
    """Evaluate the set and print what came out; exit code 0 however well it went."""
    done = 0

    def tell(score: Score, total: int) -> None:
        nonlocal done
        done += 1
        right = score.verdict_right and score.top1 is not False and score.kind is not False
        sys.stderr.write(
            f"{done}/{total} {score.case}: {'right' if right else 'NOT RIGHT'}, {score.calls} calls\n"
        )

    document = evaluate(EvalRequest(folder, key, planner, jobs, output), tell)
    if as_json:
        json.dump(document, sys.stdout, ensure_ascii=False)
        sys.stdout.write("\n")
    else:
        sys.stdout.writelines(line + "\n" for line in table(document))
    return 0
