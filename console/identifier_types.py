"""Arguments that name something stored, completed at the shell from the database: runs, checkpoints, evidence, approvals.

Only a database file is read for it: a server may take longer to answer than a person waits for a key.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    from opsleuth.checkpoints.store import Store

MOST_OFFERED = 50
"""Runs that are offered, the newest ones."""

_LONGEST_HELP = 60


class StoredNameType(click.ParamType[str]):
    """The name of something that the database holds; any text is taken, the command itself looks it up."""

    name = "text"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """The stored names that begin like `incomplete`; none where the database cannot be read."""
        from opsleuth.checkpoints.errors import StoreError
        from opsleuth.state.errors import OpsleuthError

        try:
            return _list_names(ctx, param.name or "", incomplete)
        except (OpsleuthError, StoreError, OSError):
            return []


class FileTextType(click.ParamType[str]):
    """Any text, completed as the name of a file."""

    name = "text"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """The shell's own completion of files."""
        del ctx, param
        return [CompletionItem(incomplete, type="file")]


_BY_ARGUMENT: dict[str, click.ParamType[str]] = {
    **dict.fromkeys(
        ("run_id", "address", "other", "one", "two", "evidence_id", "approval_id"), StoredNameType()
    ),
    **dict.fromkeys(("words", "alert"), FileTextType()),
}


def add_completion(parameters: Iterable[click.Parameter]) -> None:
    """Let the parameters that name something stored, or a file, be completed."""
    for parameter in parameters:
        found = _BY_ARGUMENT.get(parameter.name or "")
        if found is not None and parameter.type is click.STRING:
            parameter.type = found


def _list_names(ctx: click.Context, name: str, incomplete: str) -> list[CompletionItem]:
    from opsleuth.checkpoints.store import Store
    from opsleuth.console.terminal_text import clean_line
    from opsleuth.redaction.redactor import Redactor
    from opsleuth.state.clock import SystemClock

    place = _locate_database(ctx)
    if not isinstance(place, Path):
        return []
    with Store.open(place, SystemClock(), Redactor(), read_only=True) as store:
        run = str(ctx.params.get("run_id") or "-")
        found = dict(_iterate_names(store, name, run, incomplete))
    return [CompletionItem(text, help=clean_line(about)[:_LONGEST_HELP]) for text, about in found.items()]


def _locate_database(ctx: click.Context) -> object:
    """Where the runs are stored: as typed, else as a configuration file says, else in the user's data folder."""
    from opsleuth.configuration.folders import xdg_folder
    from opsleuth.configuration.option_files import read_file_options

    typed = dict(ctx.find_root().obj or {})
    named, _ = read_file_options(ctx.find_root().command.params, typed).get("db", (None, ""))
    return typed.get("db") or named or xdg_folder("XDG_DATA_HOME", ".local/share") / "opsleuth.db"


def _iterate_names(store: "Store", name: str, run: str, incomplete: str) -> Iterable[tuple[str, str]]:
    if name == "evidence_id":
        rows = store.evidence.list(store.runs.find(run).id)
        yield from ((row.id, row.headline) for row in rows if row.id.startswith(incomplete.upper()))
    elif name == "approval_id":
        waiting = store.approvals.list(store.runs.find(run).id, "pending")
        asked = ((row.id, str(row.document.get("tool") or "")) for row in waiting)
        yield from (item for item in asked if item[0].startswith(incomplete.upper()))
    elif "@" in incomplete and name != "run_id":
        yield from _iterate_checkpoints(store, incomplete)
    else:
        listed = store.runs.list(limit=MOST_OFFERED)
        yield from (
            (row.id, f"{row.status}: {row.question}")
            for row in listed
            if row.id.startswith(incomplete)
            or (incomplete and row.id.rpartition("-")[2].startswith(incomplete))
        )


def _iterate_checkpoints(store: "Store", incomplete: str) -> Iterable[tuple[str, str]]:
    run, _, begun = incomplete.partition("@")
    for point in store.history.list(store.runs.find(run or "-").id):
        if point.name.startswith(begun):
            yield f"{run}@{point.name}", f"before {point.next}, turn {point.turn}"
