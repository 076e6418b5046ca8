"""`opsleuth eval`: run sets of cases, score them, compare results. Progress on stderr, the table or the document on stdout."""

import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from opsleuth.console.options import CliGroup, current_options
from opsleuth.console.output import parse_time_option
from opsleuth.console.store_access import open_store_for_reading
from opsleuth.state.canonical_json import parse_json_text
from opsleuth.state.errors import UsageError
from opsleuth.state.run_status import ExitCode

if TYPE_CHECKING:
    from opsleuth.evals.compare import ChangedCase
    from opsleuth.evals.score import CaseScore

RESULTS_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)


@click.group("eval", cls=CliGroup)
def evaluation() -> None:
    """Run sets of cases and score them."""


@evaluation.command("run")
@click.argument("source", metavar="SET", type=click.Path(path_type=Path))
@click.option(
    "--key", type=click.Path(path_type=Path), metavar="FILE", help="The key (default: SET/answers.json)."
)
@click.option(
    "--repeat", type=click.IntRange(1, 100), default=1, show_default=True, help="How often each case is run."
)
@click.option("--jobs", type=click.IntRange(1, 64), default=1, show_default=True, help="Processes, 1 to 64.")
@click.option("--only", multiple=True, metavar="PATTERN", help="Only cases whose id matches: 'builtin-1*'.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The results; continues from an existing file. The runs are kept beside it.",
)
def evaluate_set(
    source: Path, key: Path | None, repeat: int, jobs: int, only: tuple[str, ...], output: Path | None
) -> int:
    """Investigate every case of a set and hold the reports against its key.

    SET is a folder of cases, a .toml or .jsonl file of tasks, or builtin: incidents that are generated.
    --record and --replay name a folder here: one recording for each case.
    """
    from opsleuth.console.run_settings import resolve_model_for_run
    from opsleuth.evals.evaluation import EvalRequest, evaluate_set
    from opsleuth.evals.results_table import format_results_table

    options = current_options()
    planner = options.planner or "offline"
    request = EvalRequest(
        folder=source,
        key=key,
        planner=planner,
        jobs=jobs,
        output=output,
        repeat=repeat,
        limits=options.limits,
        model=None if planner == "offline" else resolve_model_for_run(options),
        record=options.record,
        replay=options.replay,
        only=only,
    )
    done = 0

    def report_progress(score: "CaseScore", total: int) -> None:
        nonlocal done
        done += 1
        sys.stderr.write(f"{done}/{total} {render_score(score)}\n")

    document = evaluate_set(request, report_progress)
    print_document(document, format_results_table(document), as_json=options.json)
    return ExitCode.WORSE if document["summary"]["all"]["unsafe"] else ExitCode.OK


@evaluation.command("compare")
@click.argument("a", type=RESULTS_FILE)
@click.argument("b", type=RESULTS_FILE)
@click.option(
    "--gate",
    type=RESULTS_FILE,
    metavar="FILE",
    help="How much worse B may be, as TOML; exit code 15 beyond it.",
)
def compare_results(a: Path, b: Path, gate: Path | None) -> int:
    """Hold results B against results A of the same cases."""
    from opsleuth.evals.compare import compare_results
    from opsleuth.evals.regression_gate import list_broken_rules, load_gate
    from opsleuth.evals.result_text import describe_comparison
    from opsleuth.evals.results_file import load_results

    options = current_options()
    rules = load_gate(gate) if gate else None
    found = compare_results(load_results(a), load_results(b))
    faults = list_broken_rules(rules, found) if rules else None
    changed = [replace(c, a=locate_store(c.a, a), b=locate_store(c.b, b)) for c in found.changed]
    found = replace(found, changed=changed)
    document = {
        "pairs": found.pairs,
        "missing": list(found.missing),
        "added": list(found.added),
        "metrics": [m.to_json() for m in found.metrics],
        "changed": [change_to_json(c) for c in found.changed],
        "gate": list(faults) if faults is not None else None,
    }
    print_document(document, describe_comparison(found, faults), as_json=options.json)
    return ExitCode.WORSE if faults else ExitCode.OK


@evaluation.command("misses")
@click.argument("results", type=RESULTS_FILE, required=False)
@click.option("--runs", is_flag=True, help="Read the stored runs instead of an evaluation's results.")
@click.option("--since", metavar="T", help="Only runs started since then: now-30d.")
def show_misses(results: Path | None, since: str | None, *, runs: bool) -> int:
    """What went wrong in RESULTS, by why and with the step; with --runs, what failed in stored runs."""
    if runs == (results is not None):
        raise click.UsageError("give the results of an evaluation, or --runs for the stored runs")
    return show_run_failures(since) if results is None else show_missed_cases(results)


def show_missed_cases(results: Path) -> int:
    """What an evaluation got wrong, grouped by why, the largest group first."""
    from opsleuth.evals.result_text import describe_misses
    from opsleuth.evals.results_file import load_results, read_scores

    scores = read_scores(load_results(results))
    groups: dict[str, list[CaseScore]] = {}
    for score in (locate_store(s, results) for s in scores if s.miss):
        groups.setdefault(str((score.miss or {})["group"]), []).append(score)
    groups = dict(sorted(groups.items(), key=lambda item: -len(item[1])))
    document = {group: [s.to_json() for s in found] for group, found in groups.items()}
    lines = describe_misses(groups, len(scores))
    print_document({"cases": len(scores), "misses": document}, lines, as_json=current_options().json)
    return ExitCode.OK


def show_run_failures(since: str | None) -> int:
    """What went wrong in stored runs, grouped by what it has in common."""
    from opsleuth.evals.result_text import describe_failures
    from opsleuth.evals.run_failures import group_failures

    options, after = current_options(), parse_time_option(since, "--since")
    with open_store_for_reading(options) as store:
        found = group_failures(store, after)
    print_document({"failures": [f.to_json() for f in found]}, describe_failures(found), as_json=options.json)
    return ExitCode.OK


@evaluation.command("add")
@click.argument("run_id", metavar="RUN")
@click.option("--expect", required=True, metavar="JSON", help="The right answer, as an entry of a key.")
@click.option(
    "--to",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("cases"),
    show_default=True,
    metavar="SET",
    help="The folder of cases that it joins.",
)
@click.option("--name", metavar="ID", help="What the case is called (default: the run's id).")
def add_case(run_id: str, expect: str, folder: Path, name: str | None) -> int:
    """Make a case of a stored run: what it looked at, redacted, and what it should have said."""
    from opsleuth.evals.case_from_run import make_case_from_run

    expected = parse_expected_answer(expect)
    with open_store_for_reading(current_options()) as store:
        made = make_case_from_run(store, run_id, expected, folder, name)
    sys.stdout.write(f"{made}\n")
    sys.stderr.write(f"evaluate it with: opsleuth eval run {folder}\n")
    return ExitCode.OK


def parse_expected_answer(text: str) -> dict[str, Any]:
    """The JSON object of `--expect`. Raises UsageError for anything else."""
    try:
        expected = parse_json_text(text)
    except ValueError as error:
        raise UsageError(
            f'--expect is not JSON ({error}): write for example {{"verdict": "healthy"}}'
        ) from None
    if not isinstance(expected, dict):
        raise UsageError('--expect is an entry of a key, for example {"verdict": "healthy"}')
    return expected


def render_score(score: "CaseScore") -> str:
    word = "right" if score.right else "NOT RIGHT"
    wasteful = ", wasteful" if score.wasteful else ""
    problem = f", {score.problem}" if score.problem else ""
    return f"{score.case}: {word}{wasteful}, {score.calls} calls{problem}"


def locate_store(score: "CaseScore", results: Path) -> "CaseScore":
    """The score with the path of its store from here, not from the results file."""
    return replace(score, store=str(results.parent / score.store) if score.store else "")


def change_to_json(changed: "ChangedCase") -> dict[str, Any]:
    def side_to_json(score: "CaseScore") -> dict[str, Any]:
        fields = ("verdict", "answered", "run", "store", "miss")
        return {name: value for name, value in score.to_json().items() if name in fields}

    head = {"case": changed.case, "repeat": changed.repeat, "what": changed.what}
    return head | {"a": side_to_json(changed.a), "b": side_to_json(changed.b)}


def print_document(document: Mapping[str, Any], lines: Iterable[str], *, as_json: bool) -> None:
    if as_json:
        json.dump(document, sys.stdout, ensure_ascii=False)
        sys.stdout.write("\n")
    else:
        sys.stdout.writelines(line + "\n" for line in lines)
