"""The index of runs: one row each, for `list`, for finding a run by a few letters, and for the lineage of forks."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from decimal import Decimal
from difflib import get_close_matches
from enum import Enum
from typing import Any

from opsleuth.checkpoints.database import NO_LIMIT, Row
from opsleuth.checkpoints.decoding import Decoders, decode_row
from opsleuth.checkpoints.errors import (
    AmbiguousIdError,
    ConflictError,
    NotFoundError,
    UnreadableStoreError,
)
from opsleuth.checkpoints.processes import status_to_show
from opsleuth.checkpoints.table_context import TableContext
from opsleuth.state.clock import format_timestamp
from opsleuth.state.run_status import Status, StopReason, Verdict

Lineage = tuple[tuple[str, int | None], ...]

LONGEST_ID = 100
"""Characters of a run's id."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """One run as the index knows it; the state's own status is the truth, this a copy repaired at resume.

    `forked_at_observation` is the parent's counter of observations at the fork. `pid`, `host`,
    `process_start` and `locked` tell who holds the run, None when nobody does. `cost` is in US dollars.
    `settings` is what resume needs (case folder, planner, limits, …), any JSON object. `created` and
    `updated` are set by the store.
    """

    id: str
    question: str
    name: str | None = None
    project: str = ""
    parent: str | None = None
    parent_checkpoint: str | None = None
    forked_at_observation: int | None = None
    status: Status = Status.RUNNING
    stop_reason: StopReason | None = None
    verdict: Verdict | None = None
    turn: int = 0
    node: str | None = None
    attempt: int = 0
    pid: int | None = None
    host: str | None = None
    process_start: str | None = None
    locked: datetime | None = None
    created: datetime = _EPOCH
    updated: datetime = _EPOCH
    tokens: int = 0
    cost: Decimal = Decimal(0)
    graph_revision: str = ""
    app_version: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def resumable(self) -> bool:
        """Whether `resume` can go on: not after a conclusion, nor after `terminate`."""
        return self.status is not Status.TERMINATED and self.stop_reason is not StopReason.CONCLUDED


COLUMNS = tuple(f.name for f in fields(RunRow))
_INSERT = (
    f"INSERT INTO runs ({', '.join(COLUMNS)}) VALUES ({', '.join(':' + c for c in COLUMNS)}) "
    f"ON CONFLICT DO NOTHING RETURNING {', '.join(COLUMNS)}"
)
_GET = "SELECT * FROM {runs} WHERE id = ?"
_LIST = """
SELECT * FROM {runs}
WHERE (:status IS NULL OR status = :status)
  AND (:since IS NULL OR created >= :since)
  AND (:project IS NULL OR project = :project)
  AND (:before IS NULL OR rowid < (SELECT rowid FROM runs WHERE id = :before))
ORDER BY rowid DESC
LIMIT :limit
"""
# Of the newest ones: a word in a question is looked for by reading the questions.
_SEARCH = """
SELECT id FROM (
    SELECT id, question, name, rowid FROM runs
    WHERE project = :project AND (:before IS NULL OR rowid < (SELECT rowid FROM runs WHERE id = :before))
    ORDER BY rowid DESC LIMIT :among
) AS newest
WHERE lower(question) LIKE :pattern ESCAPE '!' OR lower(name) LIKE :pattern ESCAPE '!' OR id LIKE :pattern ESCAPE '!'
ORDER BY rowid DESC LIMIT :limit
"""
_COUNTS = (
    "SELECT status, sum(runs) AS total FROM run_counts WHERE project = ? GROUP BY status HAVING sum(runs) > 0"
)
_CHANGES = "SELECT id, project, status, runs FROM run_counts ORDER BY id LIMIT ?"
_DROP_CHANGES = "DELETE FROM run_counts WHERE id IN ({ids})"
_PUT_COUNT = "INSERT INTO run_counts (project, status, runs) VALUES (:project, :status, :runs)"
SEARCHED_RUNS = 10_000
"""The newest runs of a project that a search reads."""
_FIND = """
SELECT id FROM runs
WHERE (substr(id, 1, length(:prefix)) = :prefix OR lower(id) LIKE '%-%-' || lower(:tail) || '%' ESCAPE '!')
  AND (:project IS NULL OR project = :project OR id = :prefix)
ORDER BY rowid DESC
"""
_NEWEST = """
SELECT id FROM runs WHERE :project IS NULL OR project = :project ORDER BY rowid DESC LIMIT 1
"""


class _CountsChangedError(Exception):
    """Another process has put the same changes together."""


class RunListing(list[RunRow]):
    """Runs, newest first. `warnings` has one line for each row that could not be read."""

    def __init__(self, rows: Sequence[RunRow] = (), warnings: Sequence[str] = ()) -> None:
        super().__init__(rows)
        self.warnings = tuple(warnings)


class RunsTable:
    """The table of runs."""

    def __init__(self, backing: TableContext) -> None:
        self._backing, self._db = backing, backing.db
        self._get, self._list = (sql.format(runs=backing.db.runs) for sql in (_GET, _LIST))
        self._lineages: dict[str, Lineage] = {}

    def create(self, run: RunRow) -> RunRow:
        """Insert a run; returns it as stored. Raises ConflictError if the id is taken: draw another one.

        A fork is made while its parent is there: NotFound where that was removed meanwhile.
        """
        now = self._backing.now()
        values = self._stored({c: getattr(run, c) for c in COLUMNS}) | {"created": now, "updated": now}
        with self._db.write(run.parent):
            if (
                run.parent is not None
                and self._db.row("SELECT 1 FROM runs WHERE id = ?", (run.parent,)) is None
            ):
                raise NotFoundError(f"no run {run.parent!r}: it was removed meanwhile")
            stored = self._db.row(_INSERT, values)
            if stored is None:
                raise ConflictError(f"run id {run.id} is taken: draw another one")
        return _run_from_row(stored)

    def get(self, run_id: str) -> RunRow | None:
        """The run with exactly this id, or None. Raises UnreadableStoreError if its row is damaged."""
        row = self._db.row(self._get, (run_id,))
        return _run_from_row(row) if row else None

    def find(self, prefix: str, project: str | None = None) -> RunRow:
        """The run whose id, or the last part of it, begins with `prefix`; `-` is the newest one.

        `project` limits the search; a whole id is found everywhere. Raises NotFoundError or AmbiguousIdError with near ids.
        """
        if prefix == "-":
            newest = self._db.row(_NEWEST, {"project": project})
            if newest is None:
                raise NotFoundError("there are no runs yet: start one with `opsleuth run`")
            return self._existing(newest["id"])
        if len(prefix) > LONGEST_ID:
            raise NotFoundError(f"no run {prefix[:40]!r}…: an id looks like inv-20261129-7k3f")
        if whole := self.get(prefix):
            return whole  # through the index: a few letters are looked for among all ids
        tail = prefix.replace("!", "!!").replace("%", "!%").replace("_", "!_")
        found = [r["id"] for r in self._db.rows(_FIND, {"prefix": prefix, "tail": tail, "project": project})]
        if len(found) == 1 and prefix:
            return self._existing(found[0])
        if found and prefix:
            raise AmbiguousIdError(f"{len(found)} runs begin with {prefix!r}", found[:5])
        raise NotFoundError(f"no run {prefix!r}", self._near(prefix, project))

    def list(
        self,
        status: Status | None = None,
        since: datetime | None = None,
        limit: int = 50,
        project: str | None = None,
        before: str | None = None,
    ) -> RunListing:
        """The newest `limit` runs, newest first; `before` is the run that a page begins behind.

        A row that cannot be read becomes a warning.
        `running` and `interrupted` are stored alike and distinguished by the process in the row.
        """
        live = status in (Status.RUNNING, Status.INTERRUPTED)
        asked = {
            "status": Status.RUNNING if live else status,
            "since": format_timestamp(since) if since else None,
            "project": project,
            "before": before,
            "limit": NO_LIMIT if live else limit,
        }
        rows, warnings = [], []
        for row in self._db.rows(self._list, asked):
            try:
                run = _run_from_row(row)
            except UnreadableStoreError as error:
                warnings.append(str(error))
            else:
                if not live or status_to_show(run) is status:
                    rows.append(run)
        return RunListing(rows[:limit], warnings)

    def counts(self, project: str) -> dict[str, int]:
        """How many runs of a project are stored, by status."""
        return {str(row["status"]): int(row["total"]) for row in self._db.rows(_COUNTS, (project,))}

    def search(
        self, text: str, project: str, limit: int = 50, before: str | None = None
    ) -> tuple[RunRow, ...]:
        """Runs of a project whose question, name or id holds this text, newest first, among the newest `SEARCHED_RUNS`."""
        escaped = text.lower().replace("!", "!!").replace("%", "!%").replace("_", "!_")
        asked = {
            "project": project,
            "before": before,
            "among": SEARCHED_RUNS,
            "pattern": f"%{escaped}%",
            "limit": limit,
        }
        found = (self.get(row["id"]) for row in self._db.rows(_SEARCH, asked))
        return tuple(run for run in found if run is not None)

    def merge_counts(self, most: int = 5_000) -> int:
        """Merge changes of the counts, at most this many; returns how many there were. Another process may do the same: one of them does."""
        with suppress(_CountsChangedError), self._db.write():
            rows = self._db.rows(_CHANGES, (most,))
            totals = Counter[tuple[str, str]]()
            for row in rows:
                totals[str(row["project"]), str(row["status"])] += int(row["runs"])
            if len(rows) <= len(totals):
                return 0
            ids = {f"i{number}": row["id"] for number, row in enumerate(rows)}
            if self._db.change(_DROP_CHANGES.format(ids=", ".join(f":{name}" for name in ids)), ids) != len(
                rows
            ):
                raise _CountsChangedError
            for (project, status), runs in sorted(totals.items()):
                self._db.change(_PUT_COUNT, {"project": project, "status": status, "runs": runs})
            return len(rows)
        return 0

    def update(self, run_id: str, **values: object) -> None:
        """Set columns of a run. Raises NotFoundError for an unknown run, KeyError for an unknown column."""
        if unknown := values.keys() - set(COLUMNS):
            raise KeyError(f"no such column of a run: {', '.join(sorted(unknown))}")
        stored = self._stored({**values, "updated": self._backing.clock.now()})
        sets = ", ".join(f"{name} = :{name}" for name in stored)
        if not self._db.change(f"UPDATE runs SET {sets} WHERE id = :_run", {**stored, "_run": run_id}):
            raise NotFoundError(f"no run {run_id!r}", self._near(run_id, None))

    def children(self, run_id: str) -> tuple[str, ...]:
        """Ids of the forks made from this run, oldest first."""
        rows = self._db.rows("SELECT id FROM runs WHERE parent = ? ORDER BY rowid", (run_id,))
        return tuple(row["id"] for row in rows)

    def list_family(self, run_id: str) -> tuple[str, ...]:
        """All runs that were forked from the same first run, that one included, parents before children."""
        found = [self.lineage(run_id)[-1][0]]
        for run in found:  # grows while it is walked
            found += [child for child in self.children(run) if child not in found]
        return tuple(found)

    def lineage(self, run_id: str) -> Lineage:
        """The run itself and its ancestors, nearest first, each with the last observation that counts.

        `(self, None), (parent, n at the fork), (grandparent, the smaller of both), …`
        """
        known = self._lineages.get(run_id)
        if known is None:
            known = self._walk(run_id)
            if self._db.row("SELECT 1 FROM runs WHERE id = ?", (run_id,)):
                self._lineages[run_id] = known
        return known

    def _walk(self, run_id: str) -> Lineage:
        line: list[tuple[str, int | None]] = [(run_id, None)]
        seen, current, upto = {run_id}, run_id, None
        while row := self._db.row("SELECT parent, forked_at_observation FROM runs WHERE id = ?", (current,)):
            current, at = row["parent"], row["forked_at_observation"] or 0
            if current is None or current in seen:
                break
            seen.add(current)
            upto = at if upto is None else min(upto, at)
            line.append((current, upto))
        return tuple(line)

    def _existing(self, run_id: str) -> RunRow:
        run = self.get(run_id)
        if run is None:
            raise NotFoundError(f"no run {run_id!r}: it has just been removed")
        return run

    def _near(self, prefix: str, project: str | None) -> Sequence[str]:
        newest = self._db.rows(
            self._list, {"status": None, "since": None, "project": project, "before": None, "limit": 500}
        )
        ids = [str(row["id"]) for row in newest]
        return get_close_matches(prefix, ids, n=3, cutoff=0.6) or ids[:3]

    def _stored(self, values: Mapping[str, Any]) -> dict[str, Any]:
        return {name: self._column(value) for name, value in values.items()}

    def _column(self, value: object) -> object:
        if isinstance(value, Mapping):
            return self._backing.settings(value)
        if isinstance(value, datetime):
            return format_timestamp(value)
        if isinstance(value, Decimal):
            return str(value)
        if isinstance(value, Enum):
            return value.value
        return self._backing.clean(value) if isinstance(value, str) else value


_DECODERS: Decoders = {
    "status": Status,
    "stop_reason": lambda text: StopReason(text) if text else None,
    "verdict": lambda text: Verdict(text) if text else None,
    "locked": lambda text: datetime.fromisoformat(text) if text else None,
    "created": datetime.fromisoformat,
    "updated": datetime.fromisoformat,
    "cost": Decimal,
    "settings": json.loads,
}


def _run_from_row(row: Row) -> RunRow:
    """Raises UnreadableStoreError for a row that holds what this version does not know."""
    return decode_row(RunRow, row, _DECODERS, name=f"run {row['id']!r}: its row")
