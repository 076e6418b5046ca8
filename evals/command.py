"""`opsleuth eval`: progress on stderr, the table or the document on stdout."""

import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from opsleuth.checkpoints.places import Place
from opsleuth.checkpoints.redact import Redactor
from opsleuth.checkpoints.store import Store
from opsleuth.evals.adopt import adopt
from opsleuth.evals.compare import Changed, compare
from opsleuth.evals.failures import failures
from opsleuth.evals.gate import broken, load_gate
from opsleuth.evals.results import load, scores_in
from opsleuth.evals.run import EvalRequest as EvalRequest  # noqa: PLC0414 - the command line's own word for it
from opsleuth.evals.run import evaluate
from opsleuth.evals.score import Score
from opsleuth.evals.table import table
from opsleuth.evals.telling import told, told_failures, told_misses
from opsleuth.state.canonical import from_json
from opsleuth.state.clock import SystemClock
from opsleuth.state.errors import UsageError
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


def misses(results: Path, *, as_json: bool) -> int:
    """What an evaluation got wrong, by why."""
    scores = scores_in(load(results))
    missed = [_with_store(s, results) for s in scores if s.miss]
    groups: dict[str, list[Score]] = {}
    for score in missed:
        groups.setdefault(str((score.miss or {})["group"]), []).append(score)
    groups = dict(sorted(groups.items(), key=lambda item: -len(item[1])))
    document = {group: [s.to_json() for s in found] for group, found in groups.items()}
    _print({"cases": len(scores), "misses": document}, told_misses(groups, len(scores)), as_json=as_json)
    return ExitCode.OK


def run_failures(database: Place, since: datetime | None, *, as_json: bool) -> int:
    """What went wrong in stored runs, by what it has in common."""
    with Store.open(database, SystemClock(), Redactor(), read_only=True) as store:
        found = failures(store, since)
    _print({"failures": [f.to_json() for f in found]}, told_failures(found), as_json=as_json)
    return ExitCode.OK


def add(database: Place, run: str, expect: str, folder: Path, name: str | None) -> int:
    """Make a case of a stored run."""
    try:
        wanted = from_json(expect)
    except ValueError as error:
        raise UsageError(
            f'--expect is no JSON ({error}): write for example {{"verdict": "healthy"}}'
        ) from None
    if not isinstance(wanted, dict):
        raise UsageError('--expect is an entry of a key, for example {"verdict": "healthy"}')
    with Store.open(database, SystemClock(), Redactor(), read_only=True) as store:
        made = adopt(store, run, wanted, folder, name)
    sys.stdout.write(f"{made}\n")
    sys.stderr.write(f"evaluate it with: opsleuth eval run {folder}\n")
    return ExitCode.OK


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
