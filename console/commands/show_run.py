"""`opsleuth show`: the status of a run, or with `RUN@C` and `--snapshot` what it knew at a checkpoint."""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import click

from opsleuth.checkpoints.follow_up_rows import list_follow_ups
from opsleuth.checkpoints.history import CheckpointPoint, split_address
from opsleuth.checkpoints.incidents import IncidentRow
from opsleuth.checkpoints.store import Store
from opsleuth.console import event_lines, run_tables
from opsleuth.console import terminal_text as texts
from opsleuth.console.argument_help import RUN_HELP
from opsleuth.console.options import CliCommand, GlobalOptions, current_options
from opsleuth.console.output import screen_for_options
from opsleuth.console.row_json import run_to_json
from opsleuth.console.screen import Line, LinePart, Screen
from opsleuth.console.stepper import views
from opsleuth.console.store_access import open_store_for_reading
from opsleuth.state.json_types import JSON

ModelExchange = Mapping[str, Any]
"""What a model was sent and what it said: role, model, messages, tools, reply."""


@click.command(
    "show",
    cls=CliCommand,
    help=f"The status of a run, what it found and what it did last; at a checkpoint, the state there.\n\n{RUN_HELP}",
)
@click.argument("run_id", metavar="RUN[@C]")
@click.option("--full", is_flag=True, help="All lines of the run's course.")
@click.option("--snapshot", is_flag=True, help="What the model was shown there, and what it said.")
def show_run(run_id: str, *, full: bool, snapshot: bool) -> int:
    if snapshot or "@" in run_id:
        return print_checkpoint(current_options(), run_id, snapshot=snapshot)
    return print_run_summary(current_options(), run_id, full=full)


def print_run_summary(options: GlobalOptions, run_id: str, *, full: bool) -> int:
    """The run's row, its report, and the last lines of its course."""
    with open_store_for_reading(options) as store:
        run = store.runs.find(run_id)
        trace = store.events.read(run.id)
        course = [event for event in trace if event_lines.is_shown_live(event, verbose=bool(options.verbose))]
        left_out = 0 if full else max(0, len(course) - run_tables.LAST_EVENTS)
        shown = run_tables.RunOverview(
            run=run,
            report=store.reports.get(run.id),
            course=course[left_out:],
            left_out=left_out,
            pending=[row.id for row in store.approvals.list(run.id, "pending")],
            questions=read_questions(store, run.id),
            judged=describe_judgement(store.incidents.get(run.id)),
        )
    if options.json:
        questions = [asked._asdict() for asked in shown.questions]
        facts = {
            "report": shown.report,
            "pending": list(shown.pending),
            "events": len(trace),
            "questions": questions,
            "judged": shown.judged or None,
        }
        event_lines.write_json(sys.stdout, run_to_json(run) | facts)
    else:
        screen = screen_for_options(options)
        screen.lines(run_tables.render_run_overview(shown, screen))
    return 0


def describe_judgement(kept: IncidentRow | None) -> str:
    """A person's word on what a run found; empty where there is none."""
    if kept is None or kept.judged is None:
        return ""
    said = (f"it was {kept.cause}" if kept.cause else "", f"helped: {kept.helped}" if kept.helped else "")
    return "; ".join(filter(None, (f"{kept.judged}, by {kept.judged_by}", *said)))


def read_questions(store: Store, run: str) -> list[run_tables.AskedQuestion]:
    """What was asked about a run after its end, with the answers."""
    return [
        run_tables.AskedQuestion(
            row.id, row.question, str((store.reports.get(row.id) or {}).get("answer") or "")
        )
        for row in list_follow_ups(store.runs, run)
    ]


def print_checkpoint(options: GlobalOptions, address: str, *, snapshot: bool) -> int:
    """The state at `RUN@C` in short; with `snapshot` what the model was sent and said in that turn."""
    run, spec = split_address(address)
    with open_store_for_reading(options) as store:
        points = store.history.list(store.runs.find(run).id)
        point = store.history.find(store.runs.find(run).id, spec or "head")
        trace = read_turn_events(store, point)
        exchanges = read_model_exchanges(store, point.run, trace) if snapshot else []
    decisions = [dict(e["data"]) for e in trace if e["type"] == "decision.made"]
    if options.json:
        facts = {"run": point.run, "ckpt": point.name, "id": point.id, "next": point.next, "turn": point.turn}
        content = {"decisions": decisions, "snapshots": exchanges} if snapshot else {"state": point.values}
        event_lines.write_json(sys.stdout, facts | content)
        return 0
    screen = screen_for_options(options)
    screen.line(LinePart(f"{point.run}@{point.name}", "title"), f"  stored {screen.times.full(point.at)}")
    screen.line(*views.render_loop(point, screen))
    screen.lines(views.render_pending_calls(point.values, {}))
    if snapshot:
        screen.lines(render_model_exchanges(exchanges, point, screen))
        screen.lines([LinePart("decision: ", "title"), str(made.get("reason", ""))] for made in decisions)
    else:
        before = points[point.number - 1] if point.number else None
        screen.lines(views.render_last_changes(before, point))
        screen.lines(views.render_value("", point.values, pretty=False))
    return 0


def read_turn_events(store: Store, point: CheckpointPoint) -> Sequence[event_lines.Event]:
    """The events of the decision that begins at this checkpoint, or else of the turn that the checkpoint is in."""
    trace = store.events.read(point.run, types=("model.completed", "decision.made"))
    return [e for e in trace if e["ckpt"] == point.id] or [e for e in trace if e["turn"] == point.turn]


def read_model_exchanges(store: Store, run: str, trace: Iterable[event_lines.Event]) -> list[ModelExchange]:
    """Each exchange with a model, its messages joined again from the stored snapshots."""
    return [
        {
            "role": event["data"].get("role"),
            "model": document["model"],
            "messages": [store.snapshots.get(run, name) for name in document["messages"]],
            "tools": [tool.get("name") for tool in store.snapshots.get(run, document["tools"])["tools"]],
            "reply": store.snapshots.get(run, document["reply"])["reply"],
        }
        for event in trace
        if event["type"] == "model.completed"
        for document in [store.snapshots.get(run, event["data"]["snapshot"])]
    ]


def render_model_exchanges(
    exchanges: Sequence[ModelExchange], point: CheckpointPoint, screen: Screen
) -> Iterable[Line]:
    if not exchanges:
        reason = f"no model was asked in turn {point.turn}: the offline planner decides from the state"
        yield [LinePart(reason, "dim")]
    for exchange in exchanges:
        yield [LinePart(f"{exchange['role']}: {exchange['model']} was sent", "title")]
        for message in exchange["messages"]:
            yield [LinePart(f"{message.get('role', '?')}:", "id")]
            yield from _render_quoted_text(_format_content(message.get("content")), screen)
        yield [LinePart("and said", "title")]
        yield from _render_quoted_text(_format_content(exchange["reply"]), screen)


def _render_quoted_text(text: str, screen: Screen) -> Iterable[Line]:
    """Text from outside, each line behind a bar, so that it cannot look like a line of ours."""
    bar = f"{screen.clean('│')} "
    for line in texts.clean_lines(text, screen.encoding):
        for piece in texts.wrap_to_width(line, screen.width - 2) if screen.width else [line]:
            yield [LinePart(bar, "warn"), piece]


def _format_content(content: JSON) -> str:
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False, indent=1)
