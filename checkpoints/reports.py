"""The report of each run as a JSON document, readable without any framework."""

import json
from collections.abc import Mapping
from typing import Any

from opsleuth.checkpoints.errors import UnreadableStoreError
from opsleuth.checkpoints.seals import seal_values
from opsleuth.checkpoints.table_context import Table
from opsleuth.state.json_types import JSON

_PUT = """
INSERT INTO reports (run, document, written) VALUES (:run, :document, :written)
ON CONFLICT (run) DO UPDATE SET document = :document, written = :written
"""


class ReportsTable(Table):
    """The table of reports, one a run: the last one counts."""

    def put(self, run: str, document: Mapping[str, Any]) -> None:
        """Store the run's report in place of an earlier one."""
        values = {"run": run, "document": self._backing.document(document), "written": self._backing.now()}
        with self._db.write(run):
            self._db.change(_PUT, values)
            seal_values(self._db, run, "reports", values)

    def get(self, run: str) -> dict[str, Any] | None:
        """The run's report, or None. Raises UnreadableStoreError if it is damaged."""
        row = self._db.row("SELECT document FROM reports WHERE run = ?", (run,))
        if row is None:
            return None
        try:
            return _require_object(json.loads(row["document"]))
        except (ValueError, TypeError) as error:
            raise UnreadableStoreError(
                f"the stored report of {run} is damaged: restore a copy of the database; `opsleuth log {run}` still shows "
                "the run's course"
            ) from error


def _require_object(document: JSON) -> dict[str, Any]:
    if not isinstance(document, dict):
        raise TypeError(f"a report is a JSON object, this is a {type(document).__name__}")
    return document
