"""Seals of the rows that the log points to: a digest for each row, in the transaction that writes the row.

The chain of events takes the seals in: whoever appends an event folds the new ones into one hash (`seal_heads`). A row that
is written again gets another seal; the last one counts.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from opsleuth.checkpoints.chain import FIRST, digest_link, read_log_key
from opsleuth.checkpoints.database import Database, Parameters
from opsleuth.state.canonical_json import to_canonical_json

REMOVED = "-"
"""The digest of a row that was removed on purpose."""

KEYS = {
    "results": "call_id",
    "observations": "number",
    "evidence": "number",
    "approvals": "id",
    "effects": "key",
    "reports": "run",
}
"""The sealed tables of ours, and the column that tells a run's rows apart."""

COLUMNS: dict[str, tuple[str, ...]] = {
    "results": ("call_id", "fields", "body", "origin", "stored"),
    "observations": ("number", "fields", "body"),
    "evidence": ("number", "fields", "body", "fetched"),
    "approvals": ("id", "about", "subject", "digest", "policy_version", "document", "status", "requested", "answered", "expires", "answered_by",
                  "via", "reason", "used"),
    "effects": ("key", "call_id", "tool", "target", "arguments", "digest", "risk", "approval", "repeat_of", "attempt", "tries", "status", "outcome",
                "result", "started", "finished", "verified", "checked"),
    "reports": ("document", "written"),
    "writes": ("checkpoint_id", "task_id", "idx", "channel", "type"),
}  # fmt: skip
WITH_BODY = frozenset(("results", "observations", "evidence"))
"""Tables whose rows point at a body. Its hash is in the row; how much was left out of it is sealed with the row."""

INSERT_SEAL = """
INSERT INTO seals (run, seq, kind, key, digest)
SELECT :run, coalesce(max(seq), 0) + 1, :kind, :key, :digest FROM seals WHERE run = :run
"""
_HEADS = """
SELECT 'events' AS kind, seq, hash, '' AS sealed, '' AS key FROM event_heads WHERE run = :run
UNION ALL SELECT 'seals', seq, hash, '', '' FROM seal_heads WHERE run = :run
UNION ALL SELECT 'new', seq, digest, kind, key FROM seals
WHERE run = :run AND seq > coalesce((SELECT seq FROM seal_heads WHERE run = :run), 0)
ORDER BY 1, 2
"""
PUT_HEAD = """
INSERT INTO seal_heads (run, seq, hash) VALUES (:run, :seq, :hash)
ON CONFLICT (run) DO UPDATE SET seq = :seq, hash = :hash
"""

MARK_UNSEALED = "INSERT INTO seal_heads (run, seq, hash) VALUES (:run, -1, '') ON CONFLICT DO NOTHING"


class Seal(NamedTuple):
    """One seal as stored."""

    seq: int
    kind: str
    key: str
    digest: str


class ChainHead(NamedTuple):
    """The end of a chain: how many links, and the last hash."""

    seq: int
    hash: str


UNSEALED = ChainHead(-1, "")
"""The head of a run that an earlier version stored: its rows have no seals until it goes on."""
START = ChainHead(0, FIRST)
"""The head of a chain without links."""


class Heads(NamedTuple):
    """The heads of a run's chains: of events, of seals, and the seals that are in no chain yet."""

    events: ChainHead | None
    seals: ChainHead | None
    new: tuple[Seal, ...]

    @property
    def sealed_so_far(self) -> ChainHead:
        """Where the chain of seals goes on."""
        return START if self.seals in (None, UNSEALED) else self.seals


def digest_row(table: str, values: Mapping[str, Any], left_out: int = 0) -> str:
    """The digest of a row of ours, `left_out` of its body included."""
    row: list[Any] = [table, *(values.get(name) for name in COLUMNS[table])]
    if table in WITH_BODY:
        row.append(left_out)
    return _shorten_digest(digest_link("", to_canonical_json(row), read_log_key()))


def digest_checkpoint(values: Mapping[str, Any]) -> str:
    """The digest of a checkpoint in the form of the file, whichever database holds it."""
    import ormsgpack

    document = ormsgpack.packb(ormsgpack.unpackb(values["checkpoint"]), option=ormsgpack.OPT_SORT_KEYS)
    row = [
        values["checkpoint_id"],
        values["parent_checkpoint_id"],
        values["type"],
        _digest_bytes(document),
        _normalize_json(values["metadata"]),
    ]
    text = to_canonical_json(row)
    return _shorten_digest(digest_link("checkpoints", text, read_log_key()))


def digest_write(values: Mapping[str, Any]) -> str:
    """The digest of what a node wrote, in the form of the file."""
    row = [*(values[name] for name in COLUMNS["writes"]), _digest_bytes(bytes(values["value"] or b""))]
    return _shorten_digest(digest_link("writes", to_canonical_json(row), read_log_key()))


def seal_parameters(run: str, kind: str, key: object, digest: str) -> dict[str, Any]:
    """What `INSERT_SEAL` takes."""
    return {"run": run, "kind": kind, "key": str(key), "digest": digest}


def seal_values(db: Database, run: str, table: str, values: Mapping[str, Any], left_out: int = 0) -> None:
    """Seal a row that was just written, inside its transaction."""
    db.change(
        INSERT_SEAL, seal_parameters(run, table, values[KEYS[table]], digest_row(table, values, left_out))
    )


def seal_stored(db: Database, run: str, table: str, keys: Iterable[object] | None = None) -> None:
    """Seal rows as they appear in the database, inside the transaction that changed them; all of the run without `keys`."""
    column = KEYS[table]
    sql = f"SELECT * FROM {table} WHERE run = ?"
    if keys is None:
        found = list(db.rows(sql, (run,)))
    else:
        found = [row for key in keys for row in db.rows(f"{sql} AND {column} = ?", (run, key))]
    for row in found:
        seal_values(db, run, table, {name: row[name] for name in {*COLUMNS[table], column}})


def seal_removal(db: Database, run: str, table: str, key: object) -> None:
    """Note that a row was removed on purpose, inside that transaction."""
    db.change(INSERT_SEAL, seal_parameters(run, table, key, REMOVED))


def read_heads(db: Database, run: str) -> Heads:
    """The heads of the chains of a run; one query."""
    ends: dict[str, ChainHead] = {}
    new = []
    for row in db.rows(_HEADS, {"run": run}):
        if row["kind"] == "new":
            new.append(Seal(row["seq"], row["sealed"], row["key"], row["hash"]))
        else:
            ends[row["kind"]] = ChainHead(row["seq"], row["hash"])
    return Heads(ends.get("events"), ends.get("seals"), tuple(new))


def seal_link(seal: Seal) -> str:
    """What the chain of seals covers of one."""
    return to_canonical_json([seal.seq, seal.kind, seal.key, seal.digest])


def fold_seals(head: ChainHead, seals: Sequence[Seal]) -> ChainHead:
    """The end of the chain after these."""
    key, last = read_log_key(), head.hash
    for seal in seals:
        last = digest_link(last, seal_link(seal), key)
    return ChainHead(seals[-1].seq if seals else head.seq, last)


def head_changes(run: str, heads: Heads) -> list[tuple[str, Parameters]]:
    """The statements that take the new seals into the chain; none where there are none."""
    if heads.seals not in (None, UNSEALED) and not heads.new:
        return []
    end = fold_seals(heads.sealed_so_far, heads.new)
    return [(PUT_HEAD, {"run": run, "seq": end.seq, "hash": end.hash})]


def mark_unsealed(db: Database, run: str) -> None:
    """Note that an earlier version stored the run, unless it has seals."""
    db.change(MARK_UNSEALED, {"run": run})


def _shorten_digest(found: str) -> str:
    """128 bits are kept of a digest: it is compared with one row, and the chain covers it in full."""
    mark, _, digits = found.rpartition(":")
    return f"{mark}:{digits[:32]}" if mark else digits[:32]


def _digest_bytes(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()


def _normalize_json(raw: bytes | str) -> str:
    return to_canonical_json(json.loads(raw))
