"""Errors of the store. The tree is drawn in `opsleuth.state.errors`."""

from collections.abc import Sequence

from opsleuth.state.errors import OpsleuthError
from opsleuth.state.run_status import ExitCode


class StoreError(OpsleuthError):
    """Base of all errors of the store."""


class NotFoundError(StoreError):
    """Nothing is stored under this id. `near` holds ids that look like it."""

    exit_code = ExitCode.NOT_FOUND

    def __init__(self, text: str, near: Sequence[str] = ()) -> None:
        super().__init__(f"{text}; near: {', '.join(near)}" if near else text)
        self.near = tuple(near)


class AmbiguousIdError(StoreError):
    """A prefix fits several runs, given in `near`: type more of the id."""

    exit_code = ExitCode.NOT_FOUND

    def __init__(self, text: str, near: Sequence[str] = ()) -> None:
        super().__init__(f"{text}: {', '.join(near)}; type more of the id")
        self.near = tuple(near)


class RunBusyError(StoreError):
    """Another live process holds the run's lock."""

    exit_code = ExitCode.BUSY

    def __init__(self, run: str, pid: int | None, host: str | None, since: str | None) -> None:
        who = f"process {pid} on {host} since {since}" if pid else "another process"
        super().__init__(
            f"{run} is held by {who}: wait for it, stop it with `opsleuth pause {run}`, or follow it with "
            f"`opsleuth watch {run}`"
        )
        self.run, self.pid, self.host, self.since = run, pid, host, since


class RunLostError(RunBusyError):
    """The run was held by this process, which was not heard from for too long: another one took it over."""

    def __init__(self, run: str, pid: int | None, host: str | None, since: str | None) -> None:
        super().__init__(run, pid, host, since)
        who = f"process {pid} on {host} has held it since {since}" if pid else "nobody holds it now"
        text = f"{run} was taken over from this process, which had not been heard of for too long: {who}"
        self.args = (
            f"{text}. This process has written nothing since, and stops; follow it with `opsleuth watch {run}`",
        )


class UnreadableStoreError(StoreError):
    """The file is not a database of ours, is damaged, or was written by a newer version. Nothing was changed."""

    exit_code = ExitCode.UNREADABLE


class InvalidRowError(UnreadableStoreError):
    """A row that the tables do not take: a value is missing, of another type, or out of its range."""


class ConflictError(StoreError):
    """A compare-and-set changed no row."""

    exit_code = ExitCode.USAGE


class AlreadyDecidedError(ConflictError):
    """The approval was answered before; the first answer stands."""


class WrongDigestError(ConflictError):
    """The answer names another digest than the one that was shown."""


class NotApprovedError(ConflictError):
    """No valid approval for exactly this effect: it must be asked (again)."""


class AlreadyStartedError(ConflictError):
    """The ledger holds this effect already, under `key` of run `run`: use its recorded result."""

    def __init__(self, text: str, run: str, key: str) -> None:
        super().__init__(text)
        self.run, self.key = run, key


class StoreFailedError(StoreError):
    """The database cannot be used now. What was committed before is safe; `opsleuth resume` goes on from there."""


class NotWritableError(StoreFailedError):
    """No permission to create or to write the database."""

    exit_code = ExitCode.CONFIG
