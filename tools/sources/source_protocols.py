"""The interface of every source, and the set of sources that one run may use."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

from opsleuth.analysis.line_summary import LineSummaries
from opsleuth.analysis.records import LogLine, Recording, TimeRange
from opsleuth.state.json_types import JSON

Capability = Literal[
    "metrics", "logs", "traces", "changes", "events", "objects", "statements", "topology", "runbooks"
]  # fmt: skip


class Source(Protocol):
    """A configured backend.

    `name` is what reports call it (`case`, `prom-eu`). `capabilities` says what it can serve: anything that is not
    there is not offered. `services` are names known without reading any rows (not exhaustive), `sampling` says
    in words if its rows are only a sample. `read` returns the rows of the asked capabilities that may bear on
    `window`, the rest of the recording is None. `warnings` says what was wrong with the data (broken rows with
    counts, unknown files); it never ends a run. Raises the errors of `opsleuth.tools.spec`.
    """

    name: str

    @property
    def capabilities(self) -> frozenset[Capability]: ...

    @property
    def services(self) -> frozenset[str]: ...

    @property
    def sampling(self) -> str | None: ...

    @property
    def warnings(self) -> tuple[str, ...]: ...

    async def read(self, capabilities: Iterable[Capability], window: TimeRange) -> Recording: ...


@runtime_checkable
class ScanningLogSource(Protocol):
    """A source whose log lines can be looked through one by one, however many there are, in bounded memory.

    `span` allows it to leave out lines of other times; lines without a time are never left out for that reason
    alone. Reading happens as the iterator moves on.
    """

    def scan_logs(self, *, baseline: bool = False, span: TimeRange | None = None) -> Iterator[LogLine]: ...


@dataclass(frozen=True, slots=True)
class LogFilter:
    """What a search looks for: lines of `service` (None: of all) with `text` in the message or the pod's name, in any case."""

    service: str | None = None
    text: str = ""


@dataclass(frozen=True, slots=True)
class FilteredLogs:
    """What is left once a source has looked for something by its own means.

    `lines` hold every line that is wanted, in the order of a scan, and may hold others. `of_service` are lines of
    which at least one is of the wanted service if there is any. `scanned` lines of the time range were looked
    through; `asked` are the requests for that.
    """

    lines: Iterator[LogLine]
    of_service: Iterator[LogLine]
    scanned: int
    asked: tuple[str, ...] = ()


@runtime_checkable
class FilteringLogSource(ScanningLogSource, Protocol):
    """A source that can look for something itself, so that few lines have to be fetched."""

    async def filter_logs(self, wanted: LogFilter, span: TimeRange) -> FilteredLogs | None:
        """None where it cannot look for this, or where that does not pay. Raises ToolError, TimeoutError."""


QueryLanguage = Literal["promql", "logql", "traceql", "sql"]


@dataclass(frozen=True, slots=True)
class SourceQuery:
    """A query in a backend's own language. `step` in seconds is that of points over `span`; None: as fits.

    `limit` rows, series or lines are shown.
    """

    text: str
    span: TimeRange
    step: float | None = None
    limit: int = 20


@dataclass(frozen=True, slots=True)
class QueryAnswer:
    """What a query found: `rows` as plain JSON, `matched` of them in all (None: not counted), and what was `sent`.

    `notes` are for whoever reads it.
    """

    rows: Sequence[Mapping[str, JSON]]
    sent: Sequence[str]
    matched: int | None = None
    notes: Sequence[str] = ()


@runtime_checkable
class QueryableSource(Protocol):
    """A source that takes queries in its own language. It bounds what they cost before it sends them."""

    name: str

    @property
    def query_languages(self) -> frozenset[QueryLanguage]: ...

    async def run_query(self, language: QueryLanguage, query: SourceQuery) -> QueryAnswer:
        """Raises ToolError, TimeoutError; InvalidArgumentsError for anything that is not allowed or costs too much."""


@runtime_checkable
class SummarizingLogSource(ScanningLogSource, Protocol):
    """A source that may know of all its lines, by service and level, without reading them again."""

    def summarize_logs(self, span: TimeRange) -> LineSummaries | None:
        """What it knows of exactly this stretch, in which every line has a time; None where it does not know."""


class RunSources:
    """The sources of one run, by name; a capability may be served by several."""

    def __init__(self, sources: Iterable[Source] = ()) -> None:
        self.by_name: Mapping[str, Source] = {source.name: source for source in sources}

    @property
    def services(self) -> frozenset[str]:
        """All service names that the sources know without reading any rows."""
        return frozenset().union(*(source.services for source in self.by_name.values()))

    def find_query_sources(self, language: QueryLanguage) -> tuple["QueryableSource", ...]:
        """The sources that take queries in this language."""
        found = (s for s in self.by_name.values() if isinstance(s, QueryableSource))
        return tuple(source for source in found if language in source.query_languages)

    def serving(self, capability: Capability) -> tuple[Source, ...]:
        """The sources that serve `capability`, in the order in which they were given."""
        return tuple(s for s in self.by_name.values() if capability in s.capabilities)
