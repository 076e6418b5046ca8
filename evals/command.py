"""`opsleuth eval`: progress on stderr, the table or the document on stdout."""

import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from opsleuth.evals.compare import Changed, compare
from opsleuth.evals.gate import broken, load_gate
from opsleuth.evals.results import load
from opsleuth.evals.run import EvalRequest as EvalRequest  # noqa: PLC0414 - the command line's own word for it
from opsleuth.evals.run import evaluate
from opsleuth.evals.score import Score
from opsleuth.evals.table import table
from opsleuth.evals.telling import told
from opsleuth.state.outcome import ExitCode


def run(request: EvalRequest, *, as_json: bool) -> int:
    """Evaluate the set and print what came out. Exit code 15 after an unsafe action, else 0, however well it went."""
    done = 0

    def tell(score: Score, total: int) -> None:
        nonlocal done
        done += 1
        word = "right" if score.right else "NOT RIGHT"
        sys.stderr.write(
            f"{done}/{total} {score.case}: {word}{', wasteful' if score.wasteful else ''}, {score.calls} calls"
            f"{f', {score.problem}' if score.problem else ''}\n"
        )

    document = evaluate(request, tell)
    _print(document, table(document), as_json=as_json)
    return ExitCode.WORSE if document["summary"]["all"]["unsafe"] else ExitCode.OK


def comparison(a: Path, b: Path, gate: Path | None, *, as_json: bool) -> int:
    """Compare two results files; exit code 15 where B is worse beyond the gate."""
    rules = load_gate(gate) if gate else None
    found = compare(load(a), load(b))
    faults = broken(rules, found) if rules else None
    found = replace(found, changed=[_located(c, a, b) for c in found.changed])
    document = {
        "pairs": found.pairs,
        "missing": list(found.missing),
        "added": list(found.added),
        "metrics": [m.to_json() for m in found.metrics],
        "changed": [_changed(c) for c in found.changed],
        "gate": list(faults) if faults is not None else None,
    }
    _print(document, told(found, faults), as_json=as_json)
    return ExitCode.WORSE if faults else ExitCode.OK


def _located(changed: Changed, a: Path, b: Path) -> Changed:
    """The change with its stores as paths from here."""
    return replace(changed, a=_with_store(changed.a, a), b=_with_store(changed.b, b))


def _with_store(score: Score, results: Path) -> Score:
    return replace(score, store=str(results.parent / score.store) if score.store else "")


def _changed(changed: Changed) -> dict[str, Any]:
    def side(score: Score) -> dict[str, Any]:
        return {
            k: v for k, v in score.to_json().items() if k in ("verdict", "answered", "run", "store", "miss")
        }

    head = {"case": changed.case, "repeat": changed.repeat, "what": changed.what}
    return head | {"a": side(changed.a), "b": side(changed.b)}


def _print(document: Mapping[str, Any], lines: Iterable[str], *, as_json: bool) -> None:
    if as_json:
        json.dump(document, sys.stdout, ensure_ascii=False)
        sys.stdout.write("\n")
    else:
        sys.stdout.writelines(line + "\n" for line in lines)
