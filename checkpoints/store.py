"""The store: one database with everything that outlives the process, behind one door."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Self

from opsleuth.checkpoints.backing import Backing
from opsleuth.checkpoints.bodies import Bodies
from opsleuth.checkpoints.control import Control
from opsleuth.checkpoints.db import Database
from opsleuth.checkpoints.errors import NotWritable, StoreError, Unreadable
from opsleuth.checkpoints.events import Events
from opsleuth.checkpoints.places import Place, Server, folder_of
from opsleuth.checkpoints.prune import Prune
from opsleuth.checkpoints.redact import Redactor
from opsleuth.checkpoints.reports import Reports
from opsleuth.checkpoints.runs import Runs
from opsleuth.state.clock import Clock

if TYPE_CHECKING:
    from opsleuth.checkpoints.alerts import Alerts
    from opsleuth.checkpoints.approvals import Approvals
    from opsleuth.checkpoints.effects import Effects
    from opsleuth.checkpoints.evidence import Evidence
    from opsleuth.checkpoints.gates import Gates
    from opsleuth.checkpoints.history import History
    from opsleuth.checkpoints.intake import Intake
    from opsleuth.checkpoints.jobs import Jobs
    from opsleuth.checkpoints.notices import Notices
    from opsleuth.checkpoints.observations import Observations
    from opsleuth.checkpoints.results import Results
    from opsleuth.checkpoints.saving import Saver
    from opsleuth.checkpoints.snapshots import Snapshots
    from opsleuth.checkpoints.tokens import Tokens
    from opsleuth.checkpoints.transfer import Transfer

# ruff: noqa: PLC0415 - `list` and `log` open the store too: their start pays for no table that they do not read


class Store:
    """All tables over one connection, for one thread. Every write is redacted and one short transaction.

    `redactor` is keyed by this database, so that equal secrets get equal tags everywhere.
    """

    def __init__(self, database: Database, clock: Clock, redactor: Redactor) -> None:
        backing = Backing(database, clock, redactor)
        self._backing, self.place, self.redactor = backing, database.place, redactor
        self.folder = folder_of(database.place)
        self.runs = Runs(backing)
        self.events = Events(backing)
        self.control = Control(backing)
        self.reports = Reports(backing)
        self.bodies = Bodies(backing)
        self.prune = Prune(backing, self.runs)

    @cached_property
    def evidence(self) -> "Evidence":
        from opsleuth.checkpoints.evidence import Evidence

        return Evidence(self._backing, self.bodies, self.runs)

    @cached_property
    def results(self) -> "Results":
        from opsleuth.checkpoints.results import Results

        return Results(self._backing, self.bodies, self.runs)

    @cached_property
    def observations(self) -> "Observations":
        from opsleuth.checkpoints.observations import Observations

        return Observations(self._backing, self.bodies, self.runs)

    @cached_property
    def snapshots(self) -> "Snapshots":
        from opsleuth.checkpoints.snapshots import Snapshots

        return Snapshots(self._backing)

    @cached_property
    def approvals(self) -> "Approvals":
        from opsleuth.checkpoints.approvals import Approvals

        return Approvals(self._backing)

    @cached_property
    def transfer(self) -> "Transfer":
        from opsleuth.checkpoints.transfer import Transfer

        return Transfer(self._backing, self.runs)

    @cached_property
    def history(self) -> "History":
        from opsleuth.checkpoints.history import History

        return History(self._backing)

    @cached_property
    def effects(self) -> "Effects":
        from opsleuth.checkpoints.effects import Effects

        return Effects(self._backing, self.runs, self.approvals)

    @cached_property
    def tokens(self) -> "Tokens":
        from opsleuth.checkpoints.tokens import Tokens

        return Tokens(self._backing)

    @cached_property
    def intake(self) -> "Intake":
        from opsleuth.checkpoints.intake import Intake

        return Intake(self._backing)

    @cached_property
    def jobs(self) -> "Jobs":
        from opsleuth.checkpoints.jobs import Jobs

        return Jobs(self._backing, self.intake)

    @cached_property
    def alerts(self) -> "Alerts":
        from opsleuth.checkpoints.alerts import Alerts

        return Alerts(self._backing)

    @cached_property
    def notices(self) -> "Notices":
        from opsleuth.checkpoints.notices import Notices

        return Notices(self._backing)

    @cached_property
    def gates(self) -> "Gates":
        from opsleuth.checkpoints.gates import Gates

        return Gates(self._backing)

    @classmethod
    def open(cls, place: Place, clock: Clock, redactor: Redactor, *, read_only: bool = False) -> Self:
        """Open the database, made or migrated first unless `read_only`; binds `redactor` to its key.

        Raises NotFound (read-only and no database), Unreadable, NotWritable, StoreFailed.
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
        for secret in place.secrets if isinstance(place, Server) else ():
            redactor.learn(secret)
        redactor.bind(_redaction_key(database))
        return cls(database, clock, redactor)

    @property
    def database(self) -> Database:
        """The connection, for what is about all tables at once."""
        return self._backing.db

    def lock(self, run_id: str) -> AbstractContextManager[object]:
        """The run's lock, as a context; entering raises Busy if it is held."""
        return self._backing.lock(run_id)

    def ensure_still_held(self) -> None:
        """Before something is done outside. Raises Lost if a run that this store holds is another process's by now."""
        self._backing.db.ensure_still_held()

    def saver(self) -> "AbstractContextManager[Saver]":
        """The framework's saver of checkpoints over the same database, as a context."""
        return self._backing.db.saver()

    def make_checkpoint_tables(self) -> None:
        """Make the framework's tables where there are none: those who write to them by themselves need them."""
        with self.saver():
            pass

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
    if isinstance(place, Server):
        try:
            from opsleuth.checkpoints.postgres.opening import open_database as open_server
        except ModuleNotFoundError as error:
            raise NotWritable(
                f"database {place}: {error.name} is not installed: pip install 'opsleuth[server]'"
            ) from None
        return open_server(place, read_only=read_only)
    from opsleuth.checkpoints.sqlite.opening import open_database as open_file

    return open_file(place, read_only=read_only)


def _redaction_key(database: Database) -> str:
    row = database.row("SELECT value FROM meta WHERE key = 'redaction_key'")
    if row is None:
        raise Unreadable(f"database {database.place} has lost its redaction key: restore a copy")
    return str(row["value"])
