"""Stored bodies: each is kept once under its SHA-256, compressed, however often it is referenced."""

import hashlib
import json
import zlib
from collections.abc import Mapping
from typing import Any, NamedTuple

from opsleuth.checkpoints.errors import NotFoundError, UnreadableStoreError
from opsleuth.checkpoints.runs import RunsTable
from opsleuth.checkpoints.table_context import Table, TableContext
from opsleuth.state.canonical_json import to_canonical_json
from opsleuth.state.json_types import JSON

CAP = 4_000_000
"""Bytes of one body before compression. What is beyond is left out of the middle, marked and counted."""

_INSERT = """
INSERT INTO bodies (sha256, size, left_out, data) VALUES (:sha256, :size, :left_out, :data) ON CONFLICT DO NOTHING
"""


class StoredBody(NamedTuple):
    """How a record is stored: `size` in bytes before compression, `stored` after, `left_out` of the middle."""

    sha256: str
    size: int
    stored: int
    left_out: int


class PackedBody(NamedTuple):
    """A record on its way into the store; `raw` is its canonical text."""

    sha256: str
    raw: bytes
    left_out: int


class BodiesTable(Table):
    """The table of bodies."""

    def pack(self, record: Mapping[str, Any]) -> PackedBody:
        """A record as it is stored, redacted first and then bounded. Takes long for a long one: not in a transaction."""
        text, left_out = bound_record(self._backing.redactor(record).value)
        raw = text.encode()
        return PackedBody(hashlib.sha256(raw).hexdigest(), raw, left_out)

    def put(self, packed: PackedBody) -> str:
        """Store it; returns its hash. The same record again costs nothing."""
        sha256, raw, left_out = packed
        if self._db.row("SELECT 1 FROM bodies WHERE sha256 = ?", (sha256,)) is None:
            values = {"sha256": sha256, "size": len(raw), "left_out": left_out, "data": zlib.compress(raw)}
            self._db.change(_INSERT, values)
        return sha256

    def info(self, sha256: str) -> StoredBody:
        """The sizes of a stored body. Raises NotFoundError."""
        row = self._db.row("SELECT size, length(data), left_out FROM bodies WHERE sha256 = ?", (sha256,))
        if row is None:
            raise NotFoundError(f"body {sha256[:12]} is not stored: it was pruned with its run")
        return StoredBody(sha256, *row)

    def record(self, sha256: str) -> dict[str, Any]:
        """The stored record. Raises NotFoundError, and UnreadableStoreError if the bytes are not those of the hash."""
        row = self._db.row("SELECT data FROM bodies WHERE sha256 = ?", (sha256,))
        if row is None:
            raise NotFoundError(f"body {sha256[:12]} is not stored: it was pruned with its run")
        try:
            raw = zlib.decompress(row["data"])
        except zlib.error as error:
            raise UnreadableStoreError(f"body {sha256[:12]} is damaged: {error}") from error
        if hashlib.sha256(raw).hexdigest() != sha256:
            raise UnreadableStoreError(f"body {sha256[:12]} was changed: its bytes do not have this hash")
        found: dict[str, Any] = json.loads(raw)
        return found


class BodyTable(Table):
    """A table whose rows point at bodies, and which a fork reads along its lineage."""

    def __init__(self, backing: TableContext, bodies: BodiesTable, runs: RunsTable) -> None:
        super().__init__(backing)
        self._bodies, self._runs = bodies, runs


def bound_record(record: Mapping[str, Any], cap: int = CAP) -> tuple[str, int]:
    """The canonical text of a record within `cap` bytes, and how many characters were left out of it.

    Long strings lose their middle first. If that does not do, the document becomes
    `{"head": …, "left_out": n, "tail": …}` with the beginning and end of its canonical text.
    """
    text = to_canonical_json(record)
    if len(text) * 4 <= cap or len(text.encode()) <= cap:
        return text, 0
    shorter, left_out = _shorten_strings(record, cap // 4)
    text = to_canonical_json(shorter)
    if len(text.encode()) <= cap:
        return text, left_out
    part = cap // 16  # a character is up to four bytes, and may need six once more as JSON
    hole = len(text) - 2 * part
    wrapped = {"head": text[:part], "left_out": hole + left_out, "tail": text[-part:]}
    return to_canonical_json(wrapped), hole + left_out


def cut_middle(text: str, limit: int) -> tuple[str, int]:
    """Head and tail of a text, the hole between them marked and counted; all of it if it has `limit` characters."""
    if len(text) <= limit:
        return text, 0
    head, tail = limit * 2 // 3, limit // 3
    hole = len(text) - head - tail
    return f"{text[:head]}\n[… {hole} characters left out …]\n{text[len(text) - tail :]}", hole


def _shorten_strings(value: JSON, limit: int) -> tuple[Any, int]:
    if isinstance(value, str):
        return cut_middle(value, limit // 4)
    if isinstance(value, Mapping):
        pairs = {key: _shorten_strings(item, limit) for key, item in value.items()}
        return {key: item for key, (item, _) in pairs.items()}, sum(n for _, n in pairs.values())
    if isinstance(value, list | tuple):
        items = [_shorten_strings(item, limit) for item in value]
        return [item for item, _ in items], sum(n for _, n in items)
    return value, 0
