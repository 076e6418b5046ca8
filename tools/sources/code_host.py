"""What hosts of code share: deployments and merges as changes of one service, each read as far as it may be."""

from abc import abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

from opsleuth.analysis.records import Change, Span
from opsleuth.tools.sources.base import Capability
from opsleuth.tools.sources.http import Session
from opsleuth.tools.sources.http_source import HttpSource, Settings, clock_check
from opsleuth.tools.sources.live import Check, Fetched
from opsleuth.tools.spec import NotPermitted

PER_PAGE = 100
MOST_PAGES = 5

Reader = Callable[[Session, float], Awaitable[Sequence[Change]]]


class CodeHost(HttpSource[Settings]):
    """Base of the sources of kinds `github` and `gitlab`. `before` in seconds is how far back changes are read."""

    capabilities: frozenset[Capability] = frozenset({"changes"})
    before: float

    @abstractmethod
    def readers(self) -> Mapping[str, Reader]:
        """What is read, by the name that a person knows it by."""

    @abstractmethod
    async def place(self, session: Session) -> str:
        """The repository's own full name. Raises ToolError."""

    async def ask(self, session: Session, capability: Capability, window: Span) -> Fetched:
        del capability
        since = window.start - self.before
        changes: list[Change] = []
        refusals: dict[str, NotPermitted] = {}
        readers = self.readers()
        for what, read in readers.items():
            try:
                changes += await read(session, since)
            except NotPermitted as error:
                refusals[what] = error
        if len(refusals) == len(readers):
            raise next(iter(refusals.values()))
        missed = tuple(f"{what} may not be read: {error}"[:400] for what, error in refusals.items())
        return Fetched({"changes": recent(changes, since, window.end)}, missed=missed)

    async def check(self) -> Sequence[Check]:
        api, now = self.api(), self.clock.now().timestamp()
        async with api.session() as session:
            place = await self.place(session)
            found = await self.ask(session, "changes", Span(now - self.before, now))
        last = found.rows["changes"][-1:]
        told = f"the last: {last[0].summary}" if last else "none yet"
        refused = [
            Check("permissions", "warning", text, "allow the token to read it") for text in found.missed
        ]
        return [
            Check("repository", "ok", place),
            clock_check(api.skew),
            Check("changes", "ok", told),
            *refused,
        ]


def recent(changes: Iterable[Change], since: float, until: float) -> list[Change]:
    """The changes of the stretch of time in order, with the one before it: it shows that the history reaches back."""
    ordered = sorted((change for change in changes if change.time < until), key=lambda change: change.time)
    inside = [change for change in ordered if change.time >= since]
    return ordered[-len(inside) - 1 :] if inside else ordered[-1:]
