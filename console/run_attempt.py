"""One attempt on a run, shown as it happens: start it, resume it, or any other work of the runner.

What is investigated is shown before the framework is loaded, which takes a second; the run's id once the run is
stored, so that whoever has seen an id can resume it.
"""

import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from opsleuth.checkpoints.database_urls import Place, folder_of
from opsleuth.console.error_reporting import close_stdout
from opsleuth.console.live_view import LiveView
from opsleuth.console.options import GlobalOptions
from opsleuth.console.output import local_times, screen_for_options, write_note
from opsleuth.console.report_output import write_report
from opsleuth.console.screen import LinePart
from opsleuth.console.store_access import find_run, open_store_for_writing
from opsleuth.redaction.redactor import Redactor
from opsleuth.state.clock import SystemClock
from opsleuth.state.run_id import new_run_id
from opsleuth.state.run_status import ExitCode, Status, StopReason

if TYPE_CHECKING:
    from opsleuth.checkpoints.store import Store
    from opsleuth.configuration.sources import ConfiguredSources
    from opsleuth.console.terminal_prompt import TerminalPrompt
    from opsleuth.graph.lifecycle.drive import Hold
    from opsleuth.graph.lifecycle.outcome import AttemptOutcome
    from opsleuth.graph.lifecycle.session import Runner


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What a new run is asked: by a person, by an alert (as JSON), or for the incident in the folder `case`.

    `platform` is the control plane that changes are made through, where it is not the configured one.
    """

    question: str | None
    case: Path | None = None
    alert: Mapping[str, Any] | None = None
    since: datetime | None = None
    until: datetime | None = None
    name: str | None = None
    pause_at: str | None = None
    platform: Mapping[str, Any] | None = None


_STARTING = "opsleuth.starting"
"""In the context of a command: whether the line of `show_starting` is still on the screen."""


def show_starting(options: GlobalOptions, subject: str) -> None:
    """Show at a terminal what is about to be investigated, on a line that goes again when the run's id is shown."""
    screen = screen_for_options(options, sys.stderr)
    if options.quiet or options.json or not screen.live:
        return
    screen.erase_line()
    screen.stream.write(screen.render([f"starting: {Redactor().text(subject).value}"]))
    screen.stream.flush()
    context = click.get_current_context(silent=True)
    if context is None:
        return

    def erase_what_is_left() -> None:
        if context.meta[_STARTING]:
            screen.erase_line()

    if _STARTING not in context.meta:
        context.call_on_close(erase_what_is_left)
    context.meta[_STARTING] = True


def start_run(
    options: GlobalOptions,
    asked: RunRequest,
    subject: str,
    found: "ConfiguredSources | None" = None,
    run_id: str = "",
) -> int:
    """Start a run over the sources `found` and show it; the exit code.

    `subject` is what it is about, for people; `run_id` a new id where none is given.
    """
    show_starting(options, subject)
    from opsleuth.console.run_settings import build_run_settings
    from opsleuth.graph.lifecycle.first_state import StartRequest

    notes: list[str] = []
    request = StartRequest(
        run=run_id or new_run_id(SystemClock().now()),
        question=asked.question,
        alert=asked.alert,
        since=asked.since,
        until=asked.until,
        name=asked.name,
        limits=options.limits,
        settings=build_run_settings(options, found, case=asked.case, platform=asked.platform),
        local=local_times(options, notes.append),
    )
    return attempt_run(
        options,
        lambda runner: pause_runner_at(runner, asked.pause_at).start(request),
        subject=subject,
        notes=notes,
    )


def pause_runner_at(runner: "Runner", node: str | None) -> "Runner":
    """The runner, stopping before the first `node` if one is given."""
    from opsleuth.graph.stepping.session import PauseAtNode

    return replace(runner, pace=PauseAtNode(node)) if node else runner


def resume_run(options: GlobalOptions, run_id: str) -> int:
    """Go on with a run from its last node and show it. Raises NotFoundError before anything heavy is loaded."""
    run = find_run(options, run_id)
    print_headline(options, f"run {run.id}  {run.question}")
    model = choose_new_model(options, run.settings.get("model"))
    return attempt_run(options, lambda runner: runner.resume(run.id, options.limits, options.planner, model))


def choose_new_model(options: GlobalOptions, stored: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """The model that an option names for the rest of the run; without such an option the run keeps its own.

    A model without a profile is asked at the endpoint that the run has stored.
    """
    given = (options.model, options.profile, options.model_mode, options.fallback)
    if options.planner != "model" and not any(given):
        return None
    from opsleuth.console.run_settings import resolve_model_for_run

    return resolve_model_for_run(options, stored)


def attempt_run(
    options: GlobalOptions,
    work: "Callable[[Runner], Coroutine[Any, Any, AttemptOutcome]]",
    write: "Callable[[Mapping[str, Any], GlobalOptions], None]" = write_report,
    subject: str | None = None,
    notes: Sequence[str] = (),
) -> int:
    """Do some work on a run and show it as it happens; the exit code. Asks at the terminal, unless it may not.

    `write` prints the report of a run that has one. `subject` says what a new run is about: its id is shown with it as
    soon as the run is stored, and the `notes` that there are by then.
    """
    import asyncio

    from opsleuth.console.otlp_export import export_newest_attempt, read_collector_settings
    from opsleuth.console.record_check import note_head
    from opsleuth.console.run_settings import build_run_parts
    from opsleuth.graph.lifecycle.session import Runner

    collector = read_collector_settings()
    aside = screen_for_options(options, sys.stderr)
    live = LiveView(
        screen_for_options(options) if options.json else aside,
        None if options.json or options.quiet else aside,
        json=options.json,
        quiet=options.quiet and not options.json,
        verbose=bool(options.verbose),
    )
    stored: list[str] = []

    def announce_run(run_id: str) -> None:
        if subject is not None:
            with live.still():
                print_headline(options, f"run {run_id}  {Redactor().text(subject).value}")
                for note in notes:
                    write_note(note)
        stored.append(run_id)

    try:
        with open_store_for_writing(options) as store, live:
            asker, hold = open_terminal(options, live, store)
            taken = build_run_parts(options, store.redactor)
            runner = Runner(
                store,
                live,
                SystemClock(),
                taken,
                asker=asker,
                hold=hold,
                heard=live.announce_stop,
                held=announce_run,
            )
            runner = replace(runner, which=asker.which if asker else None)
            outcome = asyncio.run(work(runner))
            export_newest_attempt(store, outcome.run, collector)
            head = note_head(store, outcome.run)
    except KeyboardInterrupt:
        if not live.broken:
            if subject is not None:
                write_note(describe_early_stop(stored))
            raise
    if live.broken:
        close_stdout()
        return ExitCode.SIGPIPE
    return print_outcome(outcome, options, head, write)


def describe_early_stop(stored: Sequence[str]) -> str:
    """What is left of a new run that was stopped before its first step, or in the middle of one."""
    if not stored:
        return "stopped before the run was stored: nothing is left of it"
    return f"stopped. Resume: opsleuth resume {stored[-1]}"


def open_terminal(
    options: GlobalOptions, live: LiveView, store: "Store"
) -> "tuple[TerminalPrompt | None, Hold | None]":
    """Who answers questions, and who decides after a Ctrl-C: the person at this process's terminal, if there is one."""
    from opsleuth.console.evidence_lines import render_evidence_lines
    from opsleuth.console.interrupt_prompt import InterruptPrompt
    from opsleuth.console.planner_notes import add_planner_note
    from opsleuth.console.terminal_prompt import TerminalPrompt, has_terminal

    silent = options.json or options.no_input or options.quiet
    if silent or not sys.stderr.isatty() or not has_terminal():
        return None, None
    terminal = TerminalPrompt(
        still=live.still, evidence=lambda run, name: render_evidence_lines(store, run, name)
    )
    holding = InterruptPrompt(still=live.still, tell=lambda run, text: add_planner_note(store, run, text))
    return terminal, lambda run, calls: "quit" if live.broken else holding(run, calls)


def print_outcome(
    outcome: "AttemptOutcome",
    options: GlobalOptions,
    head: str,
    write: "Callable[[Mapping[str, Any], GlobalOptions], None]" = write_report,
) -> int:
    """The status of the run on stderr, then the report on stdout, so that a screen ends with its headline; the exit code."""
    if options.quiet and outcome.status is Status.WAITING and not options.json:
        write_note(render_last_line(outcome, options.database))
    if options.verbose:
        write_note(f"to verify the record later: opsleuth log {outcome.run} --verify --head {head}")
    if not options.quiet:
        write_note(render_last_line(outcome, options.database))
    if outcome.report and not options.json:
        if not options.quiet:
            write_note("")
        sys.stderr.flush()
        write(outcome.report, options)
        sys.stdout.flush()
    return int(outcome.exit_code)


def render_last_line(outcome: "AttemptOutcome", database: Place) -> str:
    """The status of the run, and the command that goes on from there."""
    detail = f": {outcome.detail}" if outcome.detail else ""
    if outcome.status is Status.TERMINATED:
        return f"terminated{detail}. Whole report: opsleuth report {outcome.run} --full"
    if outcome.stop_reason is StopReason.CONCLUDED:
        return f"{outcome.status}{detail}. Whole report: opsleuth report {outcome.run} --full"
    if outcome.status is Status.WAITING:
        return f"{outcome.detail}: opsleuth approvals {outcome.run}"
    why = f" ({outcome.stop_reason})" if outcome.stop_reason else ""
    if outcome.stop_reason is StopReason.INTERNAL_ERROR:
        detail += f". The traceback is in {folder_of(database) / 'errors.log'}"
    return f"{outcome.status}{why}{detail}. Resume: opsleuth resume {outcome.run}"


def print_headline(options: GlobalOptions, text: str) -> None:
    """The first line of an attempt, on stderr, in place of what `show_starting` has written."""
    screen = screen_for_options(options, sys.stderr)
    if options.json:
        write_note(text)
    elif not options.quiet:
        screen.erase_line()
        if context := click.get_current_context(silent=True):
            context.meta[_STARTING] = False
        screen.line(LinePart(text, "title"))
