"""What every table of the store shares: the database, the clock, and the one funnel of redaction."""

import re
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

from opsleuth.checkpoints.db import Database
from opsleuth.checkpoints.errors import NotFound
from opsleuth.checkpoints.redact import Redactor
from opsleuth.state.canonical import canonical
from opsleuth.state.clock import Clock, stamp

RUN_ID = re.compile(r"(?!\.)[\w.-]{1,100}")
"""What the id of a run may look like: it names a lock and a folder."""


class Backing(NamedTuple):
    """Passed to each table when the store opens."""

    db: Database
    clock: Clock
    redactor: Redactor

    def now(self) -> str:
        """The time of a row: RFC 3339 UTC."""
        return stamp(self.clock.now())

    def clean(self, text: str) -> str:
        """Text without secrets."""
        clean: str = self.redactor.text(text).value
        return clean

    def document(self, value: Any) -> str:  # noqa: ANN401 - any JSON value
        """A JSON value without secrets, as canonical text."""
        return canonical(self.redactor(value).value)

    def settings(self, value: Any) -> str:  # noqa: ANN401 - any JSON value
        """The same for settings: references to secrets stay."""
        return canonical(self.redactor.settings(value).value)

    def lock(self, run: str) -> AbstractContextManager[object]:
        """The run's lock for one attempt; entering raises Busy if it is held. Raises NotFound for what is no id."""
        if not RUN_ID.fullmatch(run):
            raise NotFound(f"{run!r} is no run id: it looks like inv-20261129-7k3f")
        return self.db.lock(run, self.now())
