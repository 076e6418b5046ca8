"""The framework's checkpoints of a run, read without the framework."""

from collections.abc import Mapping
from typing import Any

from opsleuth.checkpoints.checkpoint_values import damaged_checkpoint_error, unpack_value
from opsleuth.checkpoints.database import Database

STEP = "coalesce((metadata ->> 'step')::bigint, -2)"
"""The number of a checkpoint's step, which only grows; the time in its id follows a clock that may go back."""
_LIST = f"""
SELECT checkpoint_id, checkpoint FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ''
ORDER BY {STEP}, checkpoint_id
"""
_BLOBS = (
    "SELECT channel, version, type, blob FROM checkpoint_blobs WHERE thread_id = ? AND checkpoint_ns = ''"
)


def read_checkpoint_documents(db: Database, run: str) -> list[tuple[str, Mapping[str, Any]]]:
    """Id and document of each, oldest first. Values that did not change between two are stored once. Raises UnreadableStoreError."""
    blobs = {
        (row["channel"], row["version"]): unpack_value(run, f"(channel {row['channel']})", row["blob"])
        for row in db.rows(_BLOBS, (run,))
        if row["type"] == "msgpack"
    }
    found: list[tuple[str, Mapping[str, Any]]] = []
    for row in db.rows(_LIST, (run,)):
        document = row["checkpoint"]
        if not isinstance(document, dict) or not isinstance(document.get("channel_values"), dict):
            raise damaged_checkpoint_error(run, row["checkpoint_id"])
        versions = document["channel_versions"].items()
        more = {name: blobs[name, version] for name, version in versions if (name, version) in blobs}
        found.append((row["checkpoint_id"], document | {"channel_values": document["channel_values"] | more}))
    return found
