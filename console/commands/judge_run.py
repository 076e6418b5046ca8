"""`opsleuth verdict`: a person's word on what a run found, for those who see the incident again."""

import json
import sys
from pathlib import Path

import click

from opsleuth.checkpoints.follow_up_rows import is_follow_up
from opsleuth.checkpoints.incidents import Judgement, PersonsWord
from opsleuth.checkpoints.runs import RunRow
from opsleuth.console import event_lines
from opsleuth.console.argument_help import RUN_HELP
from opsleuth.console.options import CliCommand, current_options
from opsleuth.console.output import write_note
from opsleuth.console.store_access import open_store_for_writing
from opsleuth.state.errors import UsageError
from opsleuth.state.fault_words import FAULT_WORDS
from opsleuth.state.nearest_name import suggest_names

HELP = f"""Say whether a run was right, and what it was.

{RUN_HELP}

Reports on incidents like this one then show your word under SEEN BEFORE. It never weighs in what a run finds. With --add-to a wrong
run becomes a case to evaluate; its --cause is then written as SERVICE:KIND.

\b
opsleuth verdict inv-20261129-7k3f right --helped "rolled orders-api back"
opsleuth verdict inv-20261129-7k3f wrong --cause orders-db:locks --add-to cases
"""


@click.command("verdict", cls=CliCommand, help=HELP)
@click.argument("run_id", metavar="RUN")
@click.argument("judged", metavar="right|wrong", type=click.Choice(["right", "wrong"]))
@click.option("--cause", metavar="TEXT", help="What it was: SERVICE:KIND, or in your words.")
@click.option("--helped", metavar="TEXT", help="What helped.")
@click.option(
    "--add-to",
    "folder",
    metavar="SET",
    type=click.Path(path_type=Path, file_okay=False),
    help="Make a case of it in this folder.",
)
def judge_run(
    run_id: str, judged: Judgement, cause: str | None, helped: str | None, folder: Path | None
) -> int:
    from opsleuth.graph.approvals.decisions import local_operator
    from opsleuth.nodes.verify.incident_memory import keep_incident

    options = current_options()
    check_words(judged, cause, folder)
    with open_store_for_writing(options) as store:
        run = store.runs.find(run_id)
        require_conclusion(run)
        if store.incidents.get(run.id) is None:  # an older version stored it
            keep_incident(store, run.id, store.reports.get(run.id) or {}, store.observations.list(run.id))
        store.incidents.judge(run.id, PersonsWord(judged, local_operator("command").name, cause, helped))
        if folder is not None and cause is not None:
            from opsleuth.evals.case_from_run import make_case_from_run

            service, _, kind = cause.partition(":")
            made = make_case_from_run(
                store, run.id, {"root_cause_service": service, "kind": kind}, folder, None
            )
            write_note(f"made the case {made}: opsleuth eval run {folder}")
    if options.json:
        event_lines.write_json(
            sys.stdout, {"run": run.id, "judged": judged, "cause": cause, "helped": helped}
        )
        return 0
    sys.stdout.write(f"{run.id} is judged {judged}{f': it was {cause}' if cause else ''}\n")
    if judged == "wrong" and folder is None:
        write_note(f"evaluate it later: opsleuth eval add {run.id} --expect '{describe_expectation(cause)}'")
    return 0


def check_words(judged: Judgement, cause: str | None, folder: Path | None) -> None:
    """Raises UsageError for words that do not go together."""
    if cause is not None and not cause.strip():
        raise UsageError("--cause is empty: say what it was, such as orders-db:locks")
    if folder is None:
        return
    if judged == "right":
        raise UsageError("--add-to makes a case of a wrong run: leave it out, or say wrong")
    service, colon, kind = (cause or "").partition(":")
    if not (service and colon and kind):
        raise UsageError(
            "--add-to needs the right answer: write --cause SERVICE:KIND, such as orders-db:locks"
        )
    if kind not in FAULT_WORDS:
        raise UsageError(f"there is no kind {kind!r} ({suggest_names(kind, FAULT_WORDS)})")


def require_conclusion(run: RunRow) -> None:
    """Raises UsageError for a run that has found nothing that could be judged."""
    if run.verdict is None:
        raise UsageError(f"{run.id} has no conclusion to judge: it is {run.status} in turn {run.turn}")
    if is_follow_up(run):
        raise UsageError(f"{run.id} is a question on {run.parent}: judge that run")


def describe_expectation(cause: str | None) -> str:
    """What `eval add` is to expect, as far as it is known."""
    service, _, kind = (cause or "").partition(":")
    known = kind in FAULT_WORDS
    return json.dumps(
        {"root_cause_service": service if known else "SERVICE", "kind": kind if known else "KIND"}
    )
