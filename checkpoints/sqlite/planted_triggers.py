"""Refuse a file with triggers that are not ours: they change what is stored behind every statement."""

from functools import cache

from opsleuth.checkpoints import migrations
from opsleuth.checkpoints.sqlite.database import SqliteDatabase

_SCRIPTS = migrations.SCRIPTS / "sqlite"
_TRIGGERS = "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' ORDER BY name"


def refuse_planted_triggers(database: SqliteDatabase) -> None:
    """Raises UnreadableStoreError for a trigger that no migration made: it could approve a call or drop an effect."""
    planted = [
        f"trigger {row['name']}" for row in database.rows(_TRIGGERS) if str(row["sql"]) not in _our_scripts()
    ]
    if planted:
        raise migrations.planted_code_error(database.path, planted)


@cache
def _our_scripts() -> str:
    return "\n".join(path.read_text("utf-8") for path in _SCRIPTS.glob("*.sql"))
