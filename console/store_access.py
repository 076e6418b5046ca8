"""How a command opens the database: with the system's clock and a redactor, for reading or for writing."""

from opsleuth.checkpoints.database_urls import Place
from opsleuth.checkpoints.runs import RunRow
from opsleuth.checkpoints.store import Store
from opsleuth.console.options import GlobalOptions
from opsleuth.redaction.redactor import Redactor
from opsleuth.state.clock import SystemClock


def open_store_for_reading(options: GlobalOptions) -> Store:
    """The store of these options, to use in a `with`. Raises NotFoundError where there is no database yet, UnreadableStoreError."""
    return Store.open(options.database, SystemClock(), Redactor(), read_only=True)


def open_store_for_writing(options: GlobalOptions) -> Store:
    """The store of these options, created or migrated first, to use in a `with`. Raises NotWritableError, UnreadableStoreError."""
    return open_store_at(options.database)


def open_store_at(place: Place) -> Store:
    """The store at a place that a command names itself, for writing."""
    return Store.open(place, SystemClock(), Redactor())


def find_run(options: GlobalOptions, run_id: str) -> RunRow:
    """The run that an id, a part of one or `-` means. Raises NotFoundError, AmbiguousIdError."""
    with open_store_for_reading(options) as store:
        return store.runs.find(run_id)
