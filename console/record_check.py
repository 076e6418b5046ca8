"""`log --verify`: whether a run is stored as it was written; and the head that is printed when a run ends, to check against later."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from opsleuth.checkpoints.errors import NotFoundError
from opsleuth.checkpoints.store import Store
from opsleuth.checkpoints.verification import (
    ANCHORS,
    RecordCheck,
    note_end,
    read_anchors,
    verify_record,
)
from opsleuth.console import event_lines
from opsleuth.console.options import GlobalOptions
from opsleuth.console.output import screen_for_options, write_note
from opsleuth.console.store_access import open_store_for_reading
from opsleuth.state.clock import SystemClock, format_timestamp
from opsleuth.state.plurals import format_count
from opsleuth.state.run_status import ExitCode

_SHOWN = 20
"""Problems that are listed; the rest are counted."""


def check_record(options: GlobalOptions, run_id: str, *, head: str | None, anchors: Path | None) -> int:
    """`log --verify`; exit 11 where something was changed, also where a run is gone whose head was noted."""
    noted = _read_noted(anchors)
    try:
        with open_store_for_reading(options) as store:
            run = store.runs.find(run_id).id
            checked = verify_record(store.events, store.database, run, head or noted.get(run))
    except NotFoundError as error:
        if head is None and run_id not in noted:
            raise
        write_note(f"{run_id} was removed after its head was noted: {error}")
        return ExitCode.UNREADABLE
    if options.json:
        event_lines.write_json(sys.stdout, _as_json(run, checked))
    elif checked.is_intact:
        screen_for_options(options).lines(_lines_of(checked))
    else:
        for line in _problems_of(run, checked):
            write_note(line)
    return 0 if checked.is_intact else ExitCode.UNREADABLE


def note_head(store: Store, run: str) -> str:
    """Where a run ends now; it is also noted in the file that OPSLEUTH_LOG_ANCHORS names."""
    head, problem = note_end(store.database, run, format_timestamp(SystemClock().now()))
    if problem:
        write_note(f"warning: {problem}")
    return head


def _read_noted(anchors: Path | None) -> dict[str, str]:
    path = anchors or (Path(os.environ[ANCHORS]) if os.environ.get(ANCHORS) else None)
    if path is None:
        return {}
    try:
        return read_anchors(path)
    except (OSError, UnicodeDecodeError) as error:
        raise click.BadParameter(f"cannot read {path}: {error}", param_hint="--anchors") from None


def _lines_of(checked: RecordCheck) -> Iterator[str]:
    rows = ", ".join(f"{count} {table}" for table, count in sorted(checked.rows.items())) or "no rows"
    yield f"{format_count(checked.lines, 'event')}, unchanged since they were written"
    yield f"checked: {rows}{'; all under the key' if checked.keyed else ''}"
    for warning in checked.warnings:
        yield f"not seen: {warning}"
    yield f"head {checked.head}"


def _problems_of(run: str, checked: RecordCheck) -> Iterator[str]:
    yield f"the record of {run} is not as it was written:"
    yield from (f"  {problem}" for problem in checked.problems[:_SHOWN])
    if len(checked.problems) > _SHOWN:
        yield f"  and {len(checked.problems) - _SHOWN} more: --json lists all"


def _as_json(run: str, checked: RecordCheck) -> dict[str, Any]:
    return {
        "run": run,
        "lines": checked.lines,
        "broken_at": checked.broken_at,
        "problem": checked.problems[0] if checked.problems else "",
        "problems": list(checked.problems),
        "warnings": list(checked.warnings),
        "rows": dict(checked.rows),
        "keyed": checked.keyed,
        "head": checked.head,
    }
