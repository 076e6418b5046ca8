"""The digests of a run's rows as they stand now, to compare with the seals or to seal what has none."""

from opsleuth.checkpoints.database import Database
from opsleuth.checkpoints.errors import StoreError
from opsleuth.checkpoints.seals import (
    COLUMNS,
    INSERT_SEAL,
    KEYS,
    WITH_BODY,
    digest_checkpoint,
    digest_row,
    digest_write,
    seal_parameters,
)
from opsleuth.checkpoints.table_context import TableContext

_PLAIN_ROWS = "SELECT * FROM {table} WHERE run = :run"
_ROWS_WITH_BODY = "SELECT {table}.*, bodies.left_out FROM {table} LEFT JOIN bodies ON bodies.sha256 = {table}.body WHERE run = :run"

RowKey = tuple[str, str]


def adopt_rows(backing: TableContext, run: str) -> None:
    """Seal what an earlier version stored of a run and did not seal: from here on a change of it shows."""
    sealed = {
        (row["kind"], row["key"])
        for row in backing.db.rows("SELECT kind, key FROM seals WHERE run = ?", (run,))
    }
    for (table, key), digest in read_row_digests(backing.db, run).items():
        if (table, key) not in sealed:
            backing.db.change(INSERT_SEAL, seal_parameters(run, table, key, digest))


def read_row_digests(db: Database, run: str, problems: list[str] | None = None) -> dict[RowKey, str]:
    """The digest of every row of a run that is sealed, as it stands now; what cannot be read is added to `problems`, or raised without them."""
    digests: dict[RowKey, str] = {}
    for table, column in KEYS.items():
        sql = (_ROWS_WITH_BODY if table in WITH_BODY else _PLAIN_ROWS).format(table=table)
        for row in db.rows(sql, {"run": run}):
            left_out = (row["left_out"] or 0) if table in WITH_BODY else 0
            digests[table, str(row[column])] = digest_row(
                table, {name: row[name] for name in COLUMNS[table]}, left_out
            )
    digests |= _read_checkpoint_digests(db, run, problems)
    return digests


def _read_checkpoint_digests(db: Database, run: str, problems: list[str] | None) -> dict[RowKey, str]:
    digests: dict[RowKey, str] = {}
    saved = db.checkpoint_db.saved_rows(run)
    while True:
        try:
            table, values = next(saved)
            key = str(values["checkpoint_id"])
            if table == "checkpoints":
                digests[table, key] = digest_checkpoint(values)
            else:
                digests[table, f"{key}/{values['task_id']}/{values['idx']}"] = digest_write(values)
        except StopIteration:
            return digests
        except (StoreError, ValueError, TypeError, LookupError, AttributeError) as error:
            if problems is None:
                raise
            problems.append(f"a checkpoint cannot be read: {type(error).__name__}")
            if not isinstance(error, ValueError | TypeError | KeyError):
                return digests
