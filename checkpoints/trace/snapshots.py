"""The messages to and from a model, by content within a run: a repeated message is stored once."""

import hashlib
import json
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from opsleuth.checkpoints.bodies import bound_record
from opsleuth.checkpoints.database import Parameters
from opsleuth.checkpoints.errors import NotFoundError
from opsleuth.checkpoints.table_context import TableContext
from opsleuth.state.canonical_json import canonical_sha256

CAP = 400_000
"""Bytes of one document before compression; what is beyond is left out of the middle, marked and counted."""

_INSERT = "INSERT INTO snapshots (run, id, data) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"


class SnapshotsTable:
    """The table of snapshots. An id is the first 16 hex digits of the redacted document's SHA-256."""

    def __init__(self, backing: TableContext) -> None:
        self._backing, self._db = backing, backing.db
        self._run, self._known = "", dict[str, str]()  # of the run that was last written: a store sees many

    def put(self, run: str, document: Mapping[str, Any]) -> str:
        """Store a document, redacted first and then bounded; the same one again costs nothing."""
        return self.put_all(run, [document])[0]

    def put_all(self, run: str, documents: Sequence[Mapping[str, Any]]) -> list[str]:
        """Store several; the id of each."""
        if run != self._run:
            self._run, self._known = run, {}
        keys, new = [canonical_sha256(document) for document in documents], list[tuple[str, Parameters]]()
        for key, document in zip(keys, documents, strict=True):
            if key not in self._known:
                raw = bound_record(self._backing.redactor(document).value, CAP)[0].encode()
                self._known[key] = hashlib.sha256(raw).hexdigest()[:16]
                new.append((_INSERT, (run, self._known[key], zlib.compress(raw))))
        if new:
            self._db.change_all(new)
        return [self._known[key] for key in keys]

    def get(self, run: str, snapshot: str) -> dict[str, Any]:
        """One stored document. Raises NotFoundError."""
        row = self._db.row("SELECT data FROM snapshots WHERE run = ? AND id = ?", (run, snapshot))
        if row is None:
            raise NotFoundError(f"no snapshot {snapshot!r} in {run}: it was pruned, or made by another run")
        found: dict[str, Any] = json.loads(zlib.decompress(row["data"]))
        return found
