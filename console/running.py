"""The commands that investigate: `run`, `demo`, `resume`. The run's id is said before anything heavy is loaded."""

import sys
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from opsleuth.checkpoints.places import Place, folder_of
from opsleuth.checkpoints.processes import standing
from opsleuth.checkpoints.redact import Redactor
from opsleuth.console.alert_input import handed_in
from opsleuth.console.failure import close_stdout
from opsleuth.console.live import Live
from opsleuth.console.options import Options
from opsleuth.console.output import moment, note, screen_of
from opsleuth.console.reading import found_run, resumable_runs, write_report
from opsleuth.console.screen import Part
from opsleuth.graph.alerts import declared_calls, grouped, understood
from opsleuth.state.clock import SystemClock
from opsleuth.state.configfile import config_files
from opsleuth.state.errors import ConfigError, UsageError
from opsleuth.state.folders import folder
from opsleuth.state.outcome import ExitCode, Status, StopReason
from opsleuth.state.run_id import new_run_id

if TYPE_CHECKING:
    from opsleuth.checkpoints.store import Store
    from opsleuth.console.terminal import Terminal
    from opsleuth.graph.drive import Hold
    from opsleuth.graph.outcome import Outcome
    from opsleuth.graph.session import Runner
    from opsleuth.tools.sources.config import Configured

_CLOCK = SystemClock()
Made = TypeVar("Made")
MOST_CHOICES = 9
"""Runs that `resume` offers where none is named."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What `run` was asked, as it was typed."""

    question: str | None
    case: Path | None
    since: str | None = None
    until: str | None = None
    name: str | None = None
    pause_at: str | None = None


def run(asked: Asked, alert: str | None, options: Options) -> int:
    """`run`: raises ConfigError with nothing to look at; no folder and a time without a zone are wrong usage."""
    since, until = moment(asked.since, "--since"), moment(asked.until, "--until")
    if since and since >= (until or _CLOCK.now()):
        raise click.BadParameter(
            "the window ends before it begins: give an earlier time", param_hint="--since"
        )
    document = handed_in(alert, lambda: {} if asked.case else _configured(options).sources)
    if asked.case is not None:
        if not asked.case.is_dir():
            raise click.BadParameter(
                f"{asked.case} is no folder: give the one that holds incident.json", param_hint="--case"
            )
        _check_case(asked.case)
        run_id = _announce(options, asked.question or f"case {asked.case.name}")
        return _start(run_id, asked, options, _named(options), alert=document, since=since, until=until)
    named = _announce(options, asked.question) if asked.question and _sources_are_named() else ""
    found = _configured(options)
    told = _first_incident(document, found) if document else None
    run_id = named or _announce(options, asked.question or str((told or {}).get("text", "")))
    return _start(run_id, asked, options, found, alert=told, since=since, until=until)


def _check_case(case: Path) -> None:
    """Raises ConfigError for a folder whose incident.json is missing or broken: no run is announced for it."""
    from opsleuth.tools.sources.incident import NotACase, read_incident

    try:
        read_incident(case)
    except NotACase as error:
        raise ConfigError(str(error)) from None


def _first_incident(document: Mapping[str, Any], found: "Configured") -> Mapping[str, Any]:
    """What the run is about; says what else the alerts tell of."""
    calls, now = declared_calls(found.sources), _CLOCK.now()
    for other in grouped(document, calls, now)[1:]:
        texts = Redactor().text("; ".join(alert.text for alert in other.alerts[:3])).value
        note(f"another incident, as far as is known, and for a run of its own: {texts}")
    return understood(document, calls, now)


def _sources_are_named() -> bool:
    """Whether a file that counts names sources; reading them takes longer than a person should wait for a first line."""
    return any(file.trusted and file.document.get("environments") for file in config_files())


def _configured(options: Options) -> "Configured":
    """The configured sources. Raises ConfigError with nothing to look at."""
    from opsleuth.console.configured_sources import no_source, sources

    found = sources(options)
    if not found.sources:
        raise no_source()
    return found


def _named(options: Options) -> "Configured":
    """What people call the services; a case is its own source."""
    from opsleuth.console.configured_sources import names

    return names(options)


def demo(options: Options, *, act: bool = False) -> int:
    """`demo`: the built-in incident, written to the user's cache folder so that it can be resumed.

    With `act` it happens in a small system of its own, which can be changed: up to the approval of the fix.
    """
    from opsleuth.scenarios.orders import QUESTION, write_case

    run_id = _announce(options, QUESTION)
    cache = folder("XDG_CACHE_HOME", ".cache")
    if not act:
        return _start(run_id, Asked(question=QUESTION, case=_written(write_case, cache / "demo")), options)
    from opsleuth.scenarios.acting import begin

    world = _written(begin, cache / "act" / run_id)
    note(f"a control plane of its own runs at {world.url} (for an hour)")
    asked = Asked(question=QUESTION, case=world.case)
    return _start(run_id, asked, options, platform={"url": world.url, "name": "shop"})


def _written(write: Callable[[Path], Made], place: Path) -> Made:
    """What `write` made of the folder. Raises ConfigError where nothing can be written."""
    try:
        return write(place)
    except OSError as error:
        raise ConfigError(
            f"the built-in incident cannot be written to {place} ({error.strerror or error}): "
            "check its permissions, or choose another folder with XDG_CACHE_HOME"
        ) from None


def _start(
    run_id: str,
    asked: Asked,
    options: Options,
    found: "Configured | None" = None,
    *,
    alert: Mapping[str, Any] | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    platform: Mapping[str, Any] | None = None,
) -> int:
    from opsleuth.console.run_settings import settings_of
    from opsleuth.graph.prepare import StartRequest

    request = StartRequest(
        run=run_id,
        question=asked.question,
        alert=alert,
        since=since,
        until=until,
        name=asked.name,
        limits=options.limits,
        settings=settings_of(options, found, case=asked.case, platform=platform),
    )
    return attempt(options, lambda runner: _paced(runner, asked.pause_at).start(request))


def _paced(runner: "Runner", node: str | None) -> "Runner":
    """The runner, stopping before the first `node` if one is given."""
    from opsleuth.graph.stepping import PauseAt

    return replace(runner, pace=PauseAt(node)) if node else runner


def resume(run_id: str | None, options: Options) -> int:
    """`resume`: go on from the last node. Raises NotFound before anything heavy is loaded."""
    run = found_run(options, run_id or _picked(options))
    _say(options, f"run {run.id}  {run.question}")
    model = _taking_over(options)
    return attempt(options, lambda runner: runner.resume(run.id, options.limits, options.planner, model))


def _taking_over(options: Options) -> Mapping[str, Any] | None:
    """The model that an option names for the rest of the run; without one the run's own goes on."""
    if (
        options.planner == "model"
        or options.model
        or options.profile
        or options.model_mode
        or options.fallback
    ):
        from opsleuth.console.run_settings import wanted

        return wanted(options)
    return None


def _picked(options: Options) -> str:
    """The run that a person picks from those that can go on. Raises UsageError where nobody can be asked."""
    if options.no_input or options.json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError(
            "which run? Give its id, the beginning of it, or - for the newest; `opsleuth list` shows them all"
        )
    rows = resumable_runs(options)[:MOST_CHOICES]
    if not rows:
        raise UsageError("no run can be resumed: `opsleuth list` shows how they ended")
    screen = screen_of(options)
    for number, row in enumerate(rows, start=1):
        screen.line(f"{number}  ", Part(row.id, "id"), f"  {standing(row)}  {row.question}")
    return rows[click.prompt("resume which", type=click.IntRange(1, len(rows))) - 1].id


def attempt(options: Options, work: "Callable[[Runner], Coroutine[Any, Any, Outcome]]") -> int:
    """Do some work on runs, shown as it happens; the exit code. A terminal is asked at, unless it may not be."""
    import asyncio

    from opsleuth.checkpoints.store import Store
    from opsleuth.console import telemetry
    from opsleuth.console.run_settings import parts
    from opsleuth.graph.session import Runner

    collector = telemetry.settings()
    aside = screen_of(options, sys.stderr)
    live = Live(
        screen_of(options) if options.json else aside,
        None if options.json or options.quiet else aside,
        json=options.json,
        quiet=options.quiet and not options.json,
        verbose=bool(options.verbose),
    )
    try:
        with Store.open(options.database, _CLOCK, Redactor()) as store, live:
            asker, hold = _at_terminal(options, live, store)
            taken = parts(options, store.redactor)
            runner = Runner(store, live, _CLOCK, taken, asker=asker, hold=hold, heard=live.say_stopping)
            runner = replace(runner, which=asker.which if asker else None)
            outcome = asyncio.run(work(runner))
            telemetry.after(store, outcome.run, collector)
    except KeyboardInterrupt:
        if not live.broken:
            raise
    if live.broken:
        close_stdout()
        return ExitCode.SIGPIPE
    return _end(outcome, options)


def _at_terminal(options: Options, live: Live, store: "Store") -> "tuple[Terminal | None, Hold | None]":
    """Who can be asked, and after a Ctrl-C what to do: whoever watches this process at its terminal."""
    from opsleuth.console.interruption import Holding
    from opsleuth.console.reading import evidence_lines
    from opsleuth.console.terminal import Terminal, at_hand
    from opsleuth.console.upkeep import tell

    if not sys.stderr.isatty() or options.json or options.no_input or not at_hand():
        return None, None
    terminal = Terminal(still=live.still, evidence=lambda run, name: evidence_lines(store, run, name))
    holding = Holding(still=live.still, tell=lambda run, text: tell(store, run, text))
    return terminal, lambda run, calls: "quit" if live.broken else holding(run, calls)


def _end(outcome: "Outcome", options: Options) -> int:
    if outcome.report and not options.json:
        if not options.quiet:
            note("")
        write_report(outcome.report, options)
        sys.stdout.flush()
    if not options.quiet:
        note(_last_line(outcome, options.database))
    return int(outcome.exit_code)


def _last_line(outcome: "Outcome", database: Place) -> str:
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


def _announce(options: Options, what: str) -> str:
    """A new run's id, said at once: what comes next loads for a second."""
    run_id = new_run_id(_CLOCK.now())
    _say(options, f"run {run_id}  {Redactor().text(what).value}")
    return run_id


def _say(options: Options, text: str) -> None:
    if options.json:
        note(text)
    elif not options.quiet:
        screen_of(options, sys.stderr).line(Part(text, "title"))
