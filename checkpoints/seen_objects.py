"""Digests of the cluster objects that runs saw, for the next run to compare with."""

import json
import zlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from opsleuth.checkpoints.table_context import Table
from opsleuth.state.canonical_json import to_canonical_json

_INSERT = """
INSERT INTO seen_objects (run, source, captured, data) VALUES (:run, :source, :captured, :data) ON CONFLICT DO NOTHING
"""
# The newest before a moment; where there is none, the newest of all.
_EARLIER = """
SELECT seen.run AS run, seen.captured AS captured, seen.data AS data
FROM seen_objects AS seen JOIN runs ON runs.id = seen.run
WHERE seen.source = :source AND runs.project = :project AND seen.run <> :run
ORDER BY CASE WHEN seen.captured <= :before THEN 0 ELSE 1 END, seen.captured DESC
LIMIT 1
"""


class SeenObjectsRow(NamedTuple):
    """What one run saw of one source: when (seconds since the epoch), digests and content by object, complete kinds."""

    run: str
    captured: float
    digests: Mapping[str, str]
    bodies: Mapping[str, str]
    kinds: Sequence[str]


class SeenObjectsTable(Table):
    """One row for each run and source; the first read of a run counts."""

    def put(self, source: str, row: SeenObjectsRow) -> None:
        """Store what a run saw; secrets in the content are replaced, digests stay comparable."""
        bodies = {key: self._backing.clean(text) for key, text in row.bodies.items()}
        document = {"digests": dict(row.digests), "bodies": bodies, "kinds": list(row.kinds)}
        raw = to_canonical_json(document).encode()
        values = {"run": row.run, "source": source, "captured": row.captured, "data": zlib.compress(raw)}
        self._db.change(_INSERT, values)

    def clean(self, text: str) -> str:
        """Text as it is stored: secrets replaced by the tags that this database has for them."""
        return self._backing.clean(text)

    def find_earlier(self, run: str, project: str, source: str, before: float) -> SeenObjectsRow | None:
        """What another run of the project saw last before a moment; else what the newest one saw."""
        values = {"run": run, "project": project, "source": source, "before": before}
        row = self._db.row(_EARLIER, values)
        if row is None:
            return None
        try:
            document = json.loads(zlib.decompress(row["data"]))
            return SeenObjectsRow(
                row["run"], float(row["captured"]), document["digests"], document["bodies"], document["kinds"]
            )
        except (zlib.error, ValueError, KeyError, TypeError):
            return None  # a damaged row costs a comparison, not a run
