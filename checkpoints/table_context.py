"""What every table of the store shares: the database, the clock, and the one funnel of redaction."""

import re
from contextlib import AbstractContextManager
from typing import NamedTuple

from opsleuth.checkpoints.database import Database
from opsleuth.checkpoints.errors import NotFoundError
from opsleuth.redaction.redactor import Redactor
from opsleuth.state.canonical_json import to_canonical_json
from opsleuth.state.clock import Clock, format_timestamp
from opsleuth.state.json_types import JSON

RUN_ID = re.compile(r"(?!\.)[\w.-]{1,100}")
"""What the id of a run may look like: it names a lock and a folder."""


class TableContext(NamedTuple):
    """Passed to each table when the store opens."""

    db: Database
    clock: Clock
    redactor: Redactor

    def now(self) -> str:
        """The time of a row: RFC 3339 UTC."""
        return format_timestamp(self.clock.now())

    def clean(self, text: str) -> str:
        """Text without secrets."""
        clean: str = self.redactor.text(text).value
        return clean

    def document(self, value: JSON) -> str:
        """A JSON value without secrets, as canonical text."""
        return to_canonical_json(self.redactor(value).value)

    def settings(self, value: JSON) -> str:
        """The same for settings: references to secrets stay."""
        return to_canonical_json(self.redactor.settings(value).value)

    def lock(self, run: str) -> AbstractContextManager[object]:
        """The run's lock for one attempt; entering raises RunBusyError if it is held. Raises NotFoundError for anything that is not an id."""
        if not RUN_ID.fullmatch(run):
            raise NotFoundError(f"{run!r} is not a run id: one looks like inv-20261129-7k3f")
        return self.db.lock(run, self.now())


class Table:
    """One table, or a few that belong together: what its statements need."""

    def __init__(self, backing: TableContext) -> None:
        self._backing, self._db = backing, backing.db
