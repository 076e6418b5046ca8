"""The store: one database with everything that outlives the process, behind one door."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Self, cast

from opsleuth.checkpoints.bodies import BodiesTable
from opsleuth.checkpoints.control_requests import ControlTable
from opsleuth.checkpoints.database import Database
from opsleuth.checkpoints.database_urls import Place, PostgresServer, folder_of
from opsleuth.checkpoints.errors import NotWritableError, StoreError, UnreadableStoreError
from opsleuth.checkpoints.pruning import RunPruner
from opsleuth.checkpoints.reports import ReportsTable
from opsleuth.checkpoints.runs import RunsTable
from opsleuth.checkpoints.table_context import TableContext
from opsleuth.checkpoints.trace.events import EventsTable
from opsleuth.redaction.redactor import Redactor
from opsleuth.state.clock import Clock

if TYPE_CHECKING:
    from opsleuth.checkpoints.approvals import ApprovalsTable
    from opsleuth.checkpoints.checkpoint_saver import CheckpointSaver
    from opsleuth.checkpoints.effects import EffectsLedger
    from opsleuth.checkpoints.evidence import EvidenceTable
    from opsleuth.checkpoints.history import CheckpointHistory
    from opsleuth.checkpoints.incidents import IncidentsTable
    from opsleuth.checkpoints.observations import ObservationsTable
    from opsleuth.checkpoints.postgres.database import PostgresDatabase as ServerDatabase
    from opsleuth.checkpoints.results import ResultsTable
    from opsleuth.checkpoints.seen_objects import SeenObjectsTable
    from opsleuth.checkpoints.service.alert_runs import AlertRunsTable
    from opsleuth.checkpoints.service.intake import IntakeTable
    from opsleuth.checkpoints.service.jobs import JobsTable
    from opsleuth.checkpoints.service.notices import NoticesTable
    from opsleuth.checkpoints.service.rate_limits import RateLimitsTable
    from opsleuth.checkpoints.service.received_alerts import ReceivedAlertsTable
    from opsleuth.checkpoints.service.spending import SpendingTable
    from opsleuth.checkpoints.service.tokens import TokensTable
    from opsleuth.checkpoints.trace.snapshots import SnapshotsTable
    from opsleuth.checkpoints.transfer import RunTransfer

# `list` and `log` open the store too: their start pays for no table that they do not read


class Store:
    """All tables over one connection, for one thread. Every write is redacted and one short transaction.

    `redactor` is keyed by this database, so that equal secrets get equal tags everywhere.
    """

    def __init__(self, database: Database, clock: Clock, redactor: Redactor) -> None:
        backing = TableContext(database, clock, redactor)
        self._backing, self.place, self.redactor = backing, database.place, redactor
        self.folder = folder_of(database.place)
        self.runs = RunsTable(backing)
        self.events = EventsTable(backing)
        self.control = ControlTable(backing)
        self.reports = ReportsTable(backing)
        self.bodies = BodiesTable(backing)
        self.prune = RunPruner(backing, self.runs)

    @cached_property
    def evidence(self) -> "EvidenceTable":
        from opsleuth.checkpoints.evidence import EvidenceTable

        return EvidenceTable(self._backing, self.bodies, self.runs)

    @cached_property
    def results(self) -> "ResultsTable":
        from opsleuth.checkpoints.results import ResultsTable

        return ResultsTable(self._backing, self.bodies, self.runs)

    @cached_property
    def observations(self) -> "ObservationsTable":
        from opsleuth.checkpoints.observations import ObservationsTable

        return ObservationsTable(self._backing, self.bodies, self.runs)

    @cached_property
    def snapshots(self) -> "SnapshotsTable":
        from opsleuth.checkpoints.trace.snapshots import SnapshotsTable

        return SnapshotsTable(self._backing)

    @cached_property
    def seen_objects(self) -> "SeenObjectsTable":
        from opsleuth.checkpoints.seen_objects import SeenObjectsTable

        return SeenObjectsTable(self._backing)

    @cached_property
    def approvals(self) -> "ApprovalsTable":
        from opsleuth.checkpoints.approvals import ApprovalsTable

        return ApprovalsTable(self._backing)

    @cached_property
    def transfer(self) -> "RunTransfer":
        from opsleuth.checkpoints.transfer import RunTransfer

        return RunTransfer(self._backing, self.runs)

    @cached_property
    def history(self) -> "CheckpointHistory":
        from opsleuth.checkpoints.history import CheckpointHistory

        return CheckpointHistory(self._backing)

    @cached_property
    def effects(self) -> "EffectsLedger":
        from opsleuth.checkpoints.effects import EffectsLedger

        return EffectsLedger(self._backing, self.runs, self.approvals)

    @cached_property
    def tokens(self) -> "TokensTable":
        from opsleuth.checkpoints.service.tokens import TokensTable

        return TokensTable(self._backing)

    @cached_property
    def intake(self) -> "IntakeTable":
        from opsleuth.checkpoints.service.intake import IntakeTable

        return IntakeTable(self._backing)

    @cached_property
    def jobs(self) -> "JobsTable":
        from opsleuth.checkpoints.service.jobs import JobsTable

        return JobsTable(self._backing, self.intake)

    @cached_property
    def alerts(self) -> "AlertRunsTable":
        from opsleuth.checkpoints.service.alert_runs import AlertRunsTable

        return AlertRunsTable(self._backing)

    @cached_property
    def notices(self) -> "NoticesTable":
        from opsleuth.checkpoints.service.notices import NoticesTable

        return NoticesTable(self._backing)

    @cached_property
    def gates(self) -> "RateLimitsTable":
        from opsleuth.checkpoints.service.rate_limits import RateLimitsTable

        return RateLimitsTable(self._backing)

    @cached_property
    def receipts(self) -> "ReceivedAlertsTable":
        from opsleuth.checkpoints.service.received_alerts import ReceivedAlertsTable

        return ReceivedAlertsTable(self._backing)

    @cached_property
    def incidents(self) -> "IncidentsTable":
        from opsleuth.checkpoints.incidents import IncidentsTable

        return IncidentsTable(self._backing)

    @cached_property
    def spending(self) -> "SpendingTable":
        from opsleuth.checkpoints.service.spending import SpendingTable

        return SpendingTable(self._backing)

    @classmethod
    def open(cls, place: Place, clock: Clock, redactor: Redactor, *, read_only: bool = False) -> Self:
        """Open the database, made or migrated first unless `read_only`; binds `redactor` to its key.

        Raises NotFoundError (read-only and no database), UnreadableStoreError, NotWritableError, StoreFailedError.
        """
        database = open_database(place, read_only=read_only)
        try:
            return cls.over(database, clock, redactor)
        except StoreError:
            database.close()
            raise

    @classmethod
    def over(cls, database: Database, clock: Clock, redactor: Redactor) -> Self:
        """A store over a database that is open; binds `redactor` to its key."""
        place = database.place
        for secret in place.secrets if isinstance(place, PostgresServer) else ():
            redactor.learn(secret)
        redactor.bind(_redaction_key(database))
        return cls(database, clock, redactor)

    @property
    def database(self) -> Database:
        """The connection, for what is about all tables at once."""
        return self._backing.db

    def lock(self, run_id: str) -> AbstractContextManager[object]:
        """The run's lock, as a context; entering raises RunBusyError if it is held."""
        return self._backing.lock(run_id)

    def ensure_still_held(self) -> None:
        """Before something is done outside. Raises RunLostError if a run that this store holds is another process's by now."""
        self._backing.db.ensure_still_held()

    def make_durable(self) -> None:
        """Before something is done outside: what is committed survives a loss of power, and of SQLite's log."""
        self._backing.db.make_durable()

    def saver(self) -> "AbstractContextManager[CheckpointSaver]":
        """The framework's saver of checkpoints over the same database, as a context."""
        return open_saver(self._backing.db)

    def make_checkpoint_tables(self) -> None:
        """Make the framework's tables where there are none: those who write to them by themselves need them."""
        with self.saver():
            pass

    def adopt_rows(self, run: str) -> None:
        """Seal what is stored of a run and has no seal, as the first event of a newer version does."""
        from opsleuth.checkpoints.row_digests import adopt_rows

        adopt_rows(self._backing, run)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Several operations as one: all of them or none. Keep it short, other processes wait meanwhile."""
        with self._backing.db.write():
            yield

    def close(self) -> None:
        self._backing.db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_database(place: Place, *, read_only: bool = False) -> Database:
    """The database of a place, with its tables as this version knows them. Raises as `Store.open`."""
    if isinstance(place, PostgresServer):
        try:
            from opsleuth.checkpoints.postgres.migration import open_database as open_server
        except ModuleNotFoundError as error:
            raise NotWritableError(
                f"database {place}: {error.name} is not installed: pip install 'opsleuth[server]'"
            ) from None
        return open_server(place, read_only=read_only)
    from opsleuth.checkpoints.sqlite.migration import open_database as open_file

    return open_file(place, read_only=read_only)


def open_saver(database: Database) -> "AbstractContextManager[CheckpointSaver]":
    """The framework's checkpoint saver over an open database; its tables are made on first use."""
    if isinstance(database.place, PostgresServer):
        from opsleuth.checkpoints.postgres.saver import open_saver as open_on_server

        return open_on_server(cast("ServerDatabase", database))
    from opsleuth.checkpoints.sqlite.saver import open_saver as open_on_file

    return open_on_file(database.place)


def _redaction_key(database: Database) -> str:
    row = database.row("SELECT value FROM meta WHERE key = 'redaction_key'")
    if row is None:
        raise UnreadableStoreError(f"database {database.place} has lost its redaction key: restore a copy")
    return str(row["value"])
