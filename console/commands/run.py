"""`opsleuth run`: start an investigation.

What is investigated is shown before anything heavy is loaded, so this file imports what it needs where it needs it.
"""

import contextlib
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from opsleuth.checkpoints.database_urls import folder_of
from opsleuth.console.options import CliCommand, GlobalOptions, current_options
from opsleuth.console.reading_flags import ReadingFlags, add_reading_flags
from opsleuth.state.clock import SystemClock
from opsleuth.state.errors import ConfigError, UsageError
from opsleuth.state.local_times import LocalTimes, SystemZone

if TYPE_CHECKING:
    from opsleuth.configuration.sources import ConfiguredSources
    from opsleuth.console.input_sources import RecognizedInput
    from opsleuth.console.run_attempt import RunRequest

_AFTER_DASHES = "opsleuth.run.after_dashes"


class RunCommand(CliCommand):
    """Words behind `--` are kept apart: they are the question, whatever files have their name."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--" in args:
            place = args.index("--")
            ctx.meta[_AFTER_DASHES] = tuple(args[place + 1 :])
            args = args[:place]
        return super().parse_args(ctx, args)


@click.command("run", cls=RunCommand)
@click.argument("words", nargs=-1, metavar="[PATH…] [QUESTION]")
@click.option(
    "--case", type=click.Path(path_type=Path), metavar="DIR", help="A recorded incident to investigate."
)
@click.option("--alert", metavar="FILE|-|URL", help="The alert, as JSON or as text; a URL must return JSON.")
@click.option(
    "--since",
    metavar="T",
    help="Start of the window: 2026-11-29T13:40Z, 13:40Z, 13:40 (local time) or now-30m.",
)
@click.option("--until", metavar="T", help="End of the window (default: now).")
@click.option("--name", help="A name for the run, for you to recognise it.")
@click.option(
    "--pause-at",
    type=click.Choice(["approve", "act", "observe", "verify"]),
    metavar="NODE",
    help="Stop before NODE for the first time; opsleuth step goes on from there.",
)
@add_reading_flags
def run_investigation(
    words: tuple[str, ...],
    case: Path | None,
    alert: str | None,
    since: str | None,
    until: str | None,
    name: str | None,
    pause_at: str | None,
    flags: ReadingFlags,
) -> int:
    """Investigate QUESTION, an alert, a recorded incident, or files: logs, metrics, traces, cluster dumps.

    A PATH is a file, a folder, an archive, or - for standard input. What follows -- is the question.
    """
    from opsleuth.console.alert_input import read_alert_document
    from opsleuth.console.input_arguments import split_run_arguments
    from opsleuth.console.output import parse_time_option, write_note
    from opsleuth.console.run_attempt import RunRequest, show_starting, start_run

    options = current_options()
    given = split_run_arguments(words, click.get_current_context().meta.get(_AFTER_DASHES, ()))
    question, case, paths = given.question, *_case_among(given.paths, case)
    if flags != ReadingFlags() and not paths:
        raise UsageError(
            "--log-format, --log-pattern and --log-zone say how files are read: name a file, or set format, pattern, zone of the source"
        )
    start, end = parse_time_option(since, "--since"), parse_time_option(until, "--until")
    if start and start >= (end or SystemClock().now()):
        raise click.BadParameter(
            "the window ends before it begins: give an earlier time", param_hint="--since"
        )
    document = read_alert_document(
        alert, lambda: {} if case or paths else require_sources(options).sources, write_note
    )
    asked = RunRequest(question, case, document, start, end, name, pause_at)
    if paths:
        return run_on_paths(options, paths, asked, flags)
    if case is not None:
        check_case_folder(case)
        return start_run(options, asked, question or f"case {case.name}", read_service_names(options))
    if question and any_source_is_named():  # reading the sources takes longer than a first line may
        show_starting(options, question)
    found = require_sources(options)
    incident = choose_first_incident(document, found, question or "") if document else None
    subject = question or str((incident or {}).get("text", ""))
    return start_run(options, replace(asked, alert=incident), subject, found)


def _case_among(paths: tuple[str, ...], case: Path | None) -> tuple[Path | None, tuple[str, ...]]:
    """The case and the other paths: a folder that holds incident.json is a case. Raises UsageError for both."""
    cases = [path for path in paths if (Path(path) / "incident.json").is_file()]
    if (cases or case) and len(paths) > len(cases) + (case is None and not cases):
        raise UsageError(
            "a recorded incident cannot be combined with other input: give either a case or other files"
        )
    if len(cases) + (case is not None) > 1:
        raise UsageError("several recorded incidents are given: investigate one at a time")
    return (Path(cases[0]) if cases else case), (() if cases else paths)


def run_on_paths(
    options: GlobalOptions, paths: tuple[str, ...], asked: "RunRequest", flags: ReadingFlags
) -> int:
    """Say what the files are, and investigate them; what is unpacked belongs to the run."""
    from opsleuth.console.input_sources import describe_input, read_input_paths
    from opsleuth.console.output import write_note
    from opsleuth.console.run_attempt import start_run
    from opsleuth.state.run_id import new_run_id

    if warning := describe_remote_model(options):
        write_note(warning)
    run_id = new_run_id(SystemClock().now())
    with _removed_on_error(folder_of(options.database) / "runs" / run_id):
        found = read_input_paths(paths, folder_of(options.database) / "runs" / run_id / "input", flags)
    if not options.quiet:
        for line in describe_input(found):
            write_note(line)
    asked = request_for_input(asked, found, options.tz or SystemZone())
    if warning := describe_missed_window(asked, found):
        write_note(warning)
    names = replace(read_service_names(options), sources=found.sources, platform=None)
    subject = asked.question or str((asked.alert or {}).get("text", ""))
    return start_run(options, asked, subject, names, run_id)


@contextlib.contextmanager
def _removed_on_error(folder: Path) -> Iterator[None]:
    with contextlib.ExitStack() as unless_done:
        unless_done.callback(shutil.rmtree, folder, ignore_errors=True)
        yield
        unless_done.pop_all()


def describe_remote_model(options: GlobalOptions) -> str:
    """Where the text of files is sent, if a model on another host decides; empty without one. Raises ConfigError."""
    from opsleuth.console.run_settings import resolve_model_for_run

    model = resolve_model_for_run(options)
    host = urlsplit(str(model["base_url"])).hostname if model else None
    if not model or not host or host in ("localhost", "127.0.0.1", "::1"):
        return ""
    return f"text of these files goes to {host} (model {model['model']}); --planner offline sends nothing"


def request_for_input(asked: "RunRequest", found: "RecognizedInput", zone: tzinfo) -> "RunRequest":
    """The request with window and question from the files, where neither options, question nor alert give them.

    `zone` is that of times in the question that name none.
    """
    from opsleuth.alerts.documents import alert_fields_from_document

    now = SystemClock().now()
    if asked.alert is None and found.alert is not None:
        asked = replace(asked, alert=alert_fields_from_document(found.alert, {}, now))
    elif asked.alert is not None:
        asked = replace(asked, alert=alert_fields_from_document(asked.alert, {}, now))
    if asked.question is None and asked.alert is None:
        asked = replace(asked, question=_default_question(found))
    window = None if asked.since or asked.until else _window_for_input(asked, found, zone)
    return replace(asked, since=window[0], until=window[1]) if window else asked


def _window_for_input(
    asked: "RunRequest", found: "RecognizedInput", zone: tzinfo
) -> tuple[datetime, datetime] | None:
    """The stretch that the question names, read at the end of the files, else all of the files' time."""
    from opsleuth.questions.incident_window import window_from_question

    if found.window is None:
        return None
    start, end = found.window
    named = (
        window_from_question(asked.question, now=end, anchor=end, local=LocalTimes(zone))
        if asked.question
        else None
    )
    if named is not None:
        return named.start, named.end
    fired = (asked.alert or {}).get("fired_at") or (asked.alert or {}).get("onset")
    if fired is not None and found.covers_moment(datetime.fromisoformat(str(fired))):
        return None
    return start, end


def describe_missed_window(asked: "RunRequest", found: "RecognizedInput") -> str:
    """Where the files begin and end, if the window lies outside of them; empty where it does not."""
    if found.window is None:
        return ""
    first, last = found.window
    if (asked.since is None or asked.since <= last) and (asked.until is None or asked.until >= first):
        return ""
    return (
        f"the window lies outside these files, which begin at {first:%Y-%m-%dT%H:%M:%SZ} and end at"
        f" {last:%Y-%m-%dT%H:%M:%SZ}: choose --since and --until within them"
    )


def _default_question(found: "RecognizedInput") -> str:
    if len(found.services) == 1:
        return f"What went wrong with {found.services[0]}?"
    names = ", ".join(kind.path.name for kind in found.kinds[:3])
    return f"What went wrong in {names}{' and other files' if len(found.kinds) > 3 else ''}?"


def check_case_folder(case: Path) -> None:
    """Raises BadParameter for no folder, ConfigError for a missing or broken incident.json: no run is announced."""
    from opsleuth.tools.sources.incident_file import NotACaseError, read_incident

    if not case.is_dir():
        raise click.BadParameter(
            f"{case} is not a folder: give the one that holds incident.json", param_hint="--case"
        )
    try:
        read_incident(case)
    except NotACaseError as error:
        raise ConfigError(str(error)) from None


def any_source_is_named() -> bool:
    """Whether a file that counts names sources."""
    from opsleuth.configuration.config_file import load_config_layers

    return any(file.trusted and file.document.get("environments") for file in load_config_layers())


def require_sources(options: GlobalOptions) -> "ConfiguredSources":
    """The configured sources. Raises ConfigError where there is none."""
    from opsleuth.console.configured_sources import no_source_error, read_allowed_sources

    found = read_allowed_sources(options)
    if not found.sources:
        raise no_source_error()
    return found


def read_service_names(options: GlobalOptions) -> "ConfiguredSources":
    """What people call the services: a case is its own source."""
    from opsleuth.console import configured_sources

    return configured_sources.read_service_names(options)


def choose_first_incident(
    document: Mapping[str, Any], found: "ConfiguredSources", question: str
) -> Mapping[str, Any]:
    """The incident that the run is about; notes the other incidents among the alerts."""
    from opsleuth.alerts.documents import (
        alert_fields_from_document,
        declared_calls,
        find_muted_alerts,
        group_alert_document,
    )
    from opsleuth.console.output import write_note
    from opsleuth.redaction.redactor import Redactor

    calls, now = declared_calls(found.sources), SystemClock().now()
    for alert in find_muted_alerts(document):
        write_note(Redactor().text(f"not looked into: {alert.text} ({alert.muted})").value)
    for other in group_alert_document(document, calls, now, question)[1:]:
        texts = Redactor().text("; ".join(alert.text for alert in other.alerts[:3])).value
        write_note(f"probably another incident, which needs its own run: {texts}")
    return alert_fields_from_document(document, calls, now, question)
