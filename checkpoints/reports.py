"""The report of each run as a JSON document, readable without any framework."""

import json
from collections.abc import Mapping
from typing import Any

from opsleuth.checkpoints.backing import Backing
from opsleuth.checkpoints.errors import Unreadable

_PUT = """
INSERT INTO reports (run, document, written) VALUES (:run, :document, :written)
ON CONFLICT (run) DO UPDATE SET document = :document, written = :written
"""


class Reports:
    """The table of reports, one a run: the last one counts."""

    def __init__(self, backing: Backing) -> None:
        self._backing, self._db = backing, backing.db

    def put(self, run: str, document: Mapping[str, Any]) -> None:
        """Store the run's report in place of an earlier one."""
        values = {"run": run, "document": self._backing.document(document), "written": self._backing.now()}
        self._db.change(_PUT, values)

    def get(self, run: str) -> dict[str, Any] | None:
        """The run's report, or None. Raises Unreadable if it is damaged."""
        row = self._db.row("SELECT document FROM reports WHERE run = ?", (run,))
        if row is None:
            return None
        try:
            return _object(json.loads(row["document"]))
        except (ValueError, TypeError) as error:
            raise Unreadable(
                f"the stored report of {run} is damaged: restore a copy of the database; `opsleuth log {run}` still tells "
                "the run's course"
            ) from error


def _object(document: Any) -> dict[str, Any]:  # noqa: ANN401 - any JSON value
    if not isinstance(document, dict):
        raise TypeError(f"a report is a JSON object, this is a {type(document).__name__}")
    return document
