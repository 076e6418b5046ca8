"""What can go wrong with the store. Each error carries the exit code that a command ends with.

StoreError
├── NotFound          no such run, evidence, approval (9)
├── Ambiguous         a prefix fits several runs (9)
├── Busy              another live process holds the run (10)
│   └── Lost              this process held it, and was taken for dead
├── Unreadable        no database, damaged, or written by a newer version; nothing was changed (11)
│   └── Misfit            a row that the tables do not take
├── Conflict          a compare-and-set changed no row: somebody was faster, or it is not allowed (2)
│   ├── AlreadyDecided    the approval was answered before
│   ├── WrongDigest       the answer names another call than the one that was asked
│   ├── NotApproved       no valid approval for this effect: pending, denied, used, expired or stale
│   └── AlreadyStarted    the ledger holds this effect already
└── StoreFailed       the database cannot be written now: disk full, locked, I/O error (1)
    └── NotWritable   no permission to create or write it (8)
"""

from collections.abc import Sequence

from opsleuth.state.outcome import ExitCode


class StoreError(Exception):
    """Base of all errors of the store; `exit_code` is what a command ends with."""

    exit_code = ExitCode.INTERNAL


class NotFound(StoreError):
    """Nothing is stored under this id. `near` holds ids that look like it."""

    exit_code = ExitCode.NOT_FOUND

    def __init__(self, text: str, near: Sequence[str] = ()) -> None:
        super().__init__(f"{text}; near: {', '.join(near)}" if near else text)
        self.near = tuple(near)


class Ambiguous(StoreError):
    """A prefix fits several runs, given in `near`: type more of the id."""

    exit_code = ExitCode.NOT_FOUND

    def __init__(self, text: str, near: Sequence[str] = ()) -> None:
        super().__init__(f"{text}: {', '.join(near)}; type more of the id")
        self.near = tuple(near)


class Busy(StoreError):
    """Another live process holds the run's lock."""

    exit_code = ExitCode.BUSY

    def __init__(self, run: str, pid: int | None, host: str | None, since: str | None) -> None:
        who = f"process {pid} on {host} since {since}" if pid else "another process"
        super().__init__(
            f"{run} is held by {who}: wait for it, stop it with `opsleuth pause {run}`, or follow it with "
            f"`opsleuth watch {run}`"
        )
        self.run, self.pid, self.host, self.since = run, pid, host, since


class Lost(Busy):
    """The run was held by this process, which was not heard of for too long: another one took it over."""

    def __init__(self, run: str, pid: int | None, host: str | None, since: str | None) -> None:
        super().__init__(run, pid, host, since)
        who = f"process {pid} on {host} has held it since {since}" if pid else "nobody holds it now"
        text = f"{run} was taken over from this process, which had not been heard of for too long: {who}"
        self.args = (
            f"{text}. This process has written nothing since, and stops; follow it with `opsleuth watch {run}`",
        )


class Unreadable(StoreError):
    """The file is no database of ours, is damaged, or was written by a newer version. Nothing was changed."""

    exit_code = ExitCode.UNREADABLE


class Misfit(Unreadable):
    """A row that the tables do not take: a value is missing, of another type, or out of its range."""


class Conflict(StoreError):
    """A compare-and-set changed no row."""

    exit_code = ExitCode.USAGE


class AlreadyDecided(Conflict):
    """The approval was answered before; the first answer stands."""


class WrongDigest(Conflict):
    """The answer names another digest than the one that was shown."""


class NotApproved(Conflict):
    """No valid approval for exactly this effect: it must be asked (again)."""


class AlreadyStarted(Conflict):
    """The ledger holds this effect already, under `key` of run `run`: use its recorded result."""

    def __init__(self, text: str, run: str, key: str) -> None:
        super().__init__(text)
        self.run, self.key = run, key


class StoreFailed(StoreError):
    """The database cannot be used now. What was committed before is safe; `opsleuth resume` goes on from there."""


class NotWritable(StoreFailed):
    """No permission to create or to write the database."""

    exit_code = ExitCode.CONFIG
