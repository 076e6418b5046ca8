"""The commands that read what is stored: they open the database read-only, show, and change nothing."""

import io
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any, Literal

import click

from opsleuth.checkpoints.errors import NotFound
from opsleuth.checkpoints.events import trace_of
from opsleuth.checkpoints.evidence import EvidenceRow
from opsleuth.checkpoints.processes import is_alive, is_held, standing
from opsleuth.checkpoints.redact import Redactor
from opsleuth.checkpoints.runs import Listing, RunRow
from opsleuth.checkpoints.spans import spans
from opsleuth.checkpoints.store import Store
from opsleuth.console import events, log_filters, tables, waterfall
from opsleuth.console import report as reports
from opsleuth.console.options import Options
from opsleuth.console.output import moment, note, screen_of
from opsleuth.console.screen import Screen, open_screen
from opsleuth.console.times import Display
from opsleuth.state.canonical import canonical
from opsleuth.state.clock import SystemClock, stamp
from opsleuth.state.outcome import Status
from opsleuth.state.replacing import replacing
from opsleuth.state.words import counted

POLL_SECONDS = 0.3
"""How often `log --follow` looks for new events."""

_CLOCK = SystemClock()


@contextmanager
def _store(options: Options) -> Iterator[Store]:
    with Store.open(options.database, _CLOCK, Redactor(), read_only=True) as store:
        yield store


def found_run(options: Options, run_id: str) -> RunRow:
    """The run that an id, a part of one or `-` means. Raises NotFound, Ambiguous."""
    with _store(options) as store:
        return store.runs.find(run_id)


def resumable_runs(options: Options) -> list[RunRow]:
    """The newest runs that can go on and that no process is working on."""
    with _store(options) as store:
        return [row for row in store.runs.list() if row.resumable and not is_held(row)]


def runs(options: Options, *, status: str | None, since: str | None, limit: int, tree: bool) -> int:
    """`list`: no database yet means no runs yet."""
    after = moment(since, "--since")
    try:
        with _store(options) as store:
            found = store.runs.list(status=Status(status) if status else None, since=after, limit=limit)
    except NotFound:
        found = Listing()
    if options.json:
        document = {"runs": [_row(row, "settings") for row in found], "warnings": list(found.warnings)}
        events.write_json(sys.stdout, document)
        return 0
    screen = screen_of(options)
    if found:
        screen.lines(tables.runs(found, screen, _CLOCK.now(), tree=tree))
    else:
        note(
            "no run fits"
            if status or since
            else "no runs yet: try the built-in incident with `opsleuth demo`"
        )
    for warning in found.warnings:
        note(f"warning: {warning}")
    return 0


def show(options: Options, run_id: str, *, full: bool) -> int:
    """`show`: the run's row, its report, and the last lines of its course."""
    with _store(options) as store:
        run = store.runs.find(run_id)
        trace = store.events.read(run.id)
        course = [event for event in trace if events.shown_live(event, verbose=bool(options.verbose))]
        left_out = 0 if full else max(0, len(course) - tables.LAST_EVENTS)
        shown = tables.Shown(
            run=run,
            report=store.reports.get(run.id),
            course=course[left_out:],
            left_out=left_out,
            pending=[row.id for row in store.approvals.list(run.id, "pending")],
        )
    if options.json:
        facts = {"report": shown.report, "pending": list(shown.pending), "events": len(trace)}
        events.write_json(sys.stdout, _row(run) | facts)
    else:
        screen = screen_of(options)
        screen.lines(tables.show(shown, screen))
    return 0


def log(
    options: Options,
    run_id: str,
    *,
    types: Sequence[str],
    after: int,
    slowest: int | None = None,
    costliest: int | None = None,
) -> int:
    """`log`: the stored events, all or of some types (`tool.` means all that begin so), or those that stand out."""
    with _store(options) as store:
        run = store.runs.find(run_id)
        rows: Sequence[events.Event] = [
            event for event in store.events.read(run.id, after=after) if _wanted(event, types)
        ]
    if slowest:
        rows = log_filters.slowest(rows, slowest)
    if costliest:
        rows = log_filters.costliest(rows, costliest)
    if options.json:
        events.write_json(sys.stdout, {"run": run.id, "events": rows})
    elif rows:
        screen = screen_of(options)
        screen.lines(tables.log(rows, screen))
    elif slowest or costliest:
        note(f"no event of {run.id} has {'a time' if slowest else 'a cost: it asked no model'}")
    return 0


def repeated(options: Options, run_id: str) -> int:
    """`log --repeated`: calls that were made again, alike or with other numbers."""
    with _store(options) as store:
        run = store.runs.find(run_id)
        found = log_filters.repeated(store.events.read(run.id))
    if options.json:
        events.write_json(sys.stdout, {"run": run.id, "repeated": [tables.repeated_json(r) for r in found]})
    elif found:
        screen = screen_of(options)
        screen.lines(tables.repeated(found, screen))
    else:
        note(f"{run.id} made no call twice")
    return 0


def trace(options: Options, run_id: str) -> int:
    """`trace`: the run as a waterfall."""
    with _store(options) as store:
        run = store.runs.find(run_id)
        found = spans(store.events.read(run.id))
    if options.json:
        document = {"run": run.id, "trace": trace_of(run.id), "spans": waterfall.to_json(found)}
        events.write_json(sys.stdout, document)
    elif found:
        screen = screen_of(options)
        screen.lines(waterfall.waterfall(found, trace_of(run.id), screen))
    else:
        note(f"{run.id} has no events yet")
    return 0


def follow(options: Options, run_id: str, *, types: Sequence[str], after: int) -> int:
    """`log --follow`: go on until the attempt ends, or its process is gone."""
    screen = screen_of(options)
    with _store(options) as store:
        run = store.runs.find(run_id)
        while True:
            alive = is_alive(store.runs.find(run.id))
            rows = store.events.read(run.id, after=after)
            for event in rows:
                if _wanted(event, types):
                    _put(event, screen, options)
            after = rows[-1]["seq"] if rows else after
            if not rows and not alive:
                return 0
            if not rows:
                time.sleep(POLL_SECONDS)


def verify(options: Options, run_id: str) -> int:
    """`log --verify`: whether the chain of hashes holds; exit 11 where it does not."""
    with _store(options) as store:
        run = store.runs.find(run_id)
        checked = store.events.verify(run.id)
    broken = checked.broken_at is not None
    if options.json:
        events.write_json(sys.stdout, {"run": run.id, **checked._asdict()})
    elif broken:
        note(f"the log of {run.id} was changed after it was written: {checked.problem}")
    else:
        screen_of(options).line(f"{counted(checked.lines, 'event')}, unchanged since they were written")
    return 11 if broken else 0


def evidence_list(options: Options, run_id: str) -> int:
    """`evidence RUN`: one line for each piece."""
    with _store(options) as store:
        run = store.runs.find(run_id)
        rows = store.evidence.list(run.id)
    if options.json:
        events.write_json(sys.stdout, {"run": run.id, "evidence": [_row(row) for row in rows]})
        return 0
    screen = screen_of(options)
    if rows:
        screen.lines(tables.evidence_list(rows, screen))
    else:
        note(f"{run.id} has no evidence yet")
    return 0


def evidence(options: Options, run_id: str, evidence_id: str, *, form: Literal["all", "raw", "query"]) -> int:
    """`evidence RUN E7`: the stored piece; `raw` are the bytes that its sha256 is of."""
    with _store(options) as store:
        run = store.runs.find(run_id)
        row = store.evidence.get(run.id, evidence_id.upper())
        record = store.evidence.record(run.id, row.id)
    screen = screen_of(options)
    if form == "raw":
        _raw(canonical(record))
    elif form == "query":
        screen.line(row.query)
    elif options.json:
        events.write_json(sys.stdout, _row(row) | {"record": record})
    else:
        screen.lines(tables.evidence(row, record, screen))
    return 0


def evidence_lines(store: Store, run: str, name: str, width: int = 100) -> list[str]:
    """A piece of evidence as lines, or the list of all of them for an empty name. Raises NotFound."""
    stream = io.StringIO()
    screen = Screen(stream, width=width)
    if name:
        row = store.evidence.get(run, name)
        screen.lines(tables.evidence(row, store.evidence.record(run, row.id), screen))
    else:
        screen.lines(tables.evidence_list(store.evidence.list(run), screen))
    return stream.getvalue().splitlines()


def report(options: Options, run_id: str, *, form: str | None, output: Path | None, full: bool) -> int:
    """`report`: the document as text, Markdown, or as it is."""
    form = form or (_form_of(output) if output else None)
    with _store(options) as store:
        run = store.runs.find(run_id)
        document = store.reports.get(run.id)
        if document is None:
            raise NotFound(
                f"{run.id} has no report yet: it is {standing(run)} in turn {run.turn}. "
                f"See `opsleuth show {run.id}`, or go on with `opsleuth resume {run.id}`"
            )
        page = _page(store, run.id, document, options) if form == "html" else None
    if output is None:
        _put_report(document, page, options, form, full=full, stream=sys.stdout)
        return 0
    with written(output) as place, place.open("w", encoding="utf-8") as stream:
        _put_report(document, page, options, form, full=full, stream=stream)
    note(f"report written to {output}")
    return 0


def _put_report(
    document: Mapping[str, Any],
    page: str | None,
    options: Options,
    form: str | None,
    *,
    full: bool,
    stream: Any,  # noqa: ANN401 - a text stream
) -> None:
    if page is not None:
        stream.write(page)
    else:
        write_report(document, options, form=form, full=full, stream=stream)


def _page(store: Store, run: str, document: Mapping[str, Any], options: Options) -> str:
    """The report as one HTML file, with the stored bodies behind it."""
    from opsleuth.console.html.page import page, stored

    return page(stored(store, run, document), Display(options.tz or UTC))


def write_report(
    document: Mapping[str, Any],
    options: Options,
    *,
    form: str | None = None,
    full: bool = False,
    stream: Any = None,  # noqa: ANN401 - a text stream
) -> None:
    """The report document in one of its forms on a stream, stdout by default."""
    stream = stream or sys.stdout
    times = Display(options.tz or UTC)
    form = form or ("json" if options.json else "text")
    if form == "json":
        events.write_json(stream, document)
    elif form == "md":
        stream.write(reports.markdown(document, times))
    else:
        screen = open_screen(stream, color=options.color, plain=options.plain, times=times)
        screen.lines(reports.text(document, screen, full=full))


def _put(event: events.Event, screen: Screen, options: Options) -> None:
    if options.json:
        events.write_json(sys.stdout, event)
        return
    screen.lines(tables.log([event], screen))
    sys.stdout.flush()


def _wanted(event: events.Event, types: Sequence[str]) -> bool:
    kind = str(event["type"])
    return not types or any(kind == t or (t.endswith(".") and kind.startswith(t)) for t in types)


def _raw(text: str) -> None:
    """The exact bytes into a pipe or file; on a terminal what could act on it is escaped."""
    if sys.stdout.isatty():
        sys.stdout.write(events.escaped(text) + "\n")
        return
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode())
    sys.stdout.buffer.flush()


def _form_of(output: Path) -> str:
    return {".md": "md", ".json": "json", ".html": "html", ".htm": "html"}.get(output.suffix.lower(), "text")


@contextmanager
def written(path: Path) -> Iterator[Path]:
    """Where to write what `-o` names, as `replacing` does. Raises BadParameter for what cannot be written."""
    try:
        with replacing(path) as place:
            yield place
    except OSError as error:
        raise click.BadParameter(f"{path} cannot be written: {error.strerror}", param_hint="-o") from None


def _row(row: RunRow | EvidenceRow, *without: str) -> dict[str, Any]:
    """A stored row as JSON: times as text, money as decimal text; a run's status is how it stands now."""
    document = {f.name: _value(getattr(row, f.name)) for f in fields(row) if f.name not in without}
    if isinstance(row, RunRow):
        document |= {"status": standing(row).value, "resumable": row.resumable}
    else:
        document["id"] = row.id
    return document


def _value(value: Any) -> Any:  # noqa: ANN401 - any column
    if isinstance(value, datetime):
        return stamp(value)
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, Enum):
        return value.value
    return value
