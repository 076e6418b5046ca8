"""The framework's checkpoints in the form in which a file holds them, and back."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from psycopg.types.json import Jsonb

from opsleuth.checkpoints.checkpoint_values import pack_value, unpack_value
from opsleuth.checkpoints.database import Database
from opsleuth.checkpoints.errors import UnreadableStoreError
from opsleuth.checkpoints.postgres.history import read_checkpoint_documents

_REST = "SELECT checkpoint_id, parent_checkpoint_id, metadata FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ''"
_WRITES = """
SELECT checkpoint_id, task_id, idx, channel, type, blob FROM checkpoint_writes
WHERE thread_id = ? AND checkpoint_ns = '' ORDER BY checkpoint_id, task_id, idx
"""
_PUT = """
INSERT INTO checkpoints (thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, checkpoint, metadata)
VALUES (:thread_id, :checkpoint_ns, :checkpoint_id, :parent_checkpoint_id, :checkpoint, :metadata)
ON CONFLICT DO NOTHING
"""
_PUT_BLOB = """
INSERT INTO checkpoint_blobs (thread_id, checkpoint_ns, channel, version, type, blob)
VALUES (:thread_id, :checkpoint_ns, :channel, :version, 'msgpack', :blob) ON CONFLICT DO NOTHING
"""
_PUT_WRITE = """
INSERT INTO checkpoint_writes (thread_id, checkpoint_ns, checkpoint_id, task_id, idx, channel, type, blob)
VALUES (:thread_id, :checkpoint_ns, :checkpoint_id, :task_id, :idx, :channel, :type, :value) ON CONFLICT DO NOTHING
"""


def saved_rows(db: Database, run: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Rows of `checkpoints` and `writes` as a file has them: each checkpoint whole, its values within."""
    place = {"thread_id": run, "checkpoint_ns": ""}
    rest = {row["checkpoint_id"]: row for row in db.rows(_REST, (run,))}
    for name, document in read_checkpoint_documents(db, run):
        row = rest[name]
        yield (
            "checkpoints",
            place
            | {
                "checkpoint_id": name,
                "parent_checkpoint_id": row["parent_checkpoint_id"],
                "type": "msgpack",
                "checkpoint": pack_value(document),
                "metadata": json.dumps(row["metadata"]).encode(),
            },
        )
    for row in db.rows(_WRITES, (run,)):
        values = {name: row[name] for name in ("checkpoint_id", "task_id", "idx", "channel", "type")}
        yield "writes", place | values | {"value": row["blob"]}


def put_saved(db: Database, table: str, values: Mapping[str, Any], origin: object) -> int:
    """Store such a row, a checkpoint's larger values once for each of their versions. Raises UnreadableStoreError."""
    try:
        return db.change(_PUT_WRITE, values) if table == "writes" else _put_checkpoint(db, values)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise UnreadableStoreError(
            f"{origin}: a row of {table} has a form that this version does not know ({error}); nothing was changed"
        ) from None


def _put_checkpoint(db: Database, values: Mapping[str, Any]) -> int:
    document = unpack_value(values["thread_id"], values["checkpoint_id"], values["checkpoint"])
    within = document["channel_values"]
    small = {name: v for name, v in within.items() if v is None or isinstance(v, str | int | float | bool)}
    for channel in within.keys() - small.keys():
        version = document["channel_versions"][channel]
        blob = {"channel": channel, "version": version, "blob": pack_value(within[channel])}
        db.change(_PUT_BLOB, {**values, **blob})
    row = {
        "checkpoint": Jsonb(document | {"channel_values": small}),
        "metadata": Jsonb(json.loads(values["metadata"])),
    }
    return db.change(_PUT, {**values, **row})
