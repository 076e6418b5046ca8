"""What code hosts share: deployments and merges as changes of one service, each read as far as it may be."""

from abc import abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

from opsleuth.analysis.records import ServiceChange, TimeRange
from opsleuth.tools.sources.http_client import HttpSession, JsonResponse
from opsleuth.tools.sources.http_source import HttpSource, Settings, check_clock_skew
from opsleuth.tools.sources.live_source import FetchedRows, SourceCheck
from opsleuth.tools.sources.source_protocols import Capability
from opsleuth.tools.spec import NotPermittedError

PER_PAGE = 100
MOST_PAGES = 5

Reader = Callable[[HttpSession, float], Awaitable[Sequence[ServiceChange]]]


class CodeHostSource(HttpSource[Settings]):
    """Base of the sources of kinds `github` and `gitlab`. `before` in seconds is how far back changes are read."""

    capabilities: frozenset[Capability] = frozenset({"changes"})
    before: float

    @abstractmethod
    def readers(self) -> Mapping[str, Reader]:
        """What is read, by the name that a person knows it by."""

    @abstractmethod
    async def place(self, session: HttpSession) -> str:
        """The repository's own full name. Raises ToolError."""

    async def ask(self, session: HttpSession, capability: Capability, window: TimeRange) -> FetchedRows:
        del capability
        since = window.start - self.before
        changes: list[ServiceChange] = []
        refusals: dict[str, NotPermittedError] = {}
        readers = self.readers()
        for what, read in readers.items():
            try:
                changes += await read(session, since)
            except NotPermittedError as error:
                refusals[what] = error
        if len(refusals) == len(readers):
            raise next(iter(refusals.values()))
        missed = tuple(f"{what} may not be read: {error}"[:400] for what, error in refusals.items())
        return FetchedRows({"changes": select_recent_changes(changes, since, window.end)}, missed=missed)

    async def check(self) -> Sequence[SourceCheck]:
        api, now = self.api(), self.clock.now().timestamp()
        async with api.session() as session:
            place = await self.place(session)
            found = await self.ask(session, "changes", TimeRange(now - self.before, now))
        last = found.rows["changes"][-1:]
        told = f"the last: {last[0].summary}" if last else "none yet"
        refused = [
            SourceCheck("permissions", "warning", text, "allow the token to read it") for text in found.missed
        ]
        return [
            SourceCheck("repository", "ok", place),
            check_clock_skew(api.skew),
            SourceCheck("changes", "ok", told),
            *refused,
        ]


def is_last(answer: JsonResponse, found: Sequence[object]) -> bool:
    """Whether no page follows. A server may give fewer on a page than it was asked for, and say that there is a next."""
    return not found or (len(found) < PER_PAGE and not answer.has_next)


def note_cut(session: HttpSession, what: str) -> None:
    """Note that there are more pages than are read."""
    session.api.partial[
        f"more than {MOST_PAGES} pages of {what.replace('_', ' ')}: the older ones were not read"
    ] = None


def select_recent_changes(
    changes: Iterable[ServiceChange], since: float, until: float
) -> list[ServiceChange]:
    """The changes of the time range in order, with the one before it: it shows that the history reaches back."""
    ordered = sorted((change for change in changes if change.time < until), key=lambda change: change.time)
    inside = [change for change in ordered if change.time >= since]
    return ordered[-len(inside) - 1 :] if inside else ordered[-1:]
