"""Two clusters may hold a service of the same name. Sources of several targets are kept apart by name.

Where all sources of a run cover one target nothing changes. Where they cover several, every name that a
source delivers carries its target in front (`prod-eu:orders-api`), so no detector, tool or claim can mix them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import cast

from opsleuth.analysis.records import LogLine, ObjectState, Recording, TimeRange
from opsleuth.state.json_types import JSON
from opsleuth.tools.sources.source_protocols import (
    Capability,
    FilteredLogs,
    FilteringLogSource,
    LogFilter,
    QueryableSource,
    QueryAnswer,
    QueryLanguage,
    ScanningLogSource,
    Source,
    SourceQuery,
)

# The columns of any row that name a service, or something that belongs to one.
_NAMES = ("service", "caller", "callee", "database", "pod", "host")


def separate_by_target(sources: Sequence[Source]) -> list[Source]:
    """The sources, each under its target if there are several."""
    targets = {getattr(source, "target", None) for source in sources}
    return list(sources) if len(targets) < 2 else [_wrap_with_target(source) for source in sources]


def strip_target(service: str, targets: Iterable[str]) -> str:
    """The name without the target in front of it."""
    return next(
        (service[len(t) + 1 :] for t in targets if t and service.startswith(f"{t}:")),
        service,
    )


def _wrap_with_target(source: Source) -> Source:
    target = getattr(source, "target", None)
    if target is None:
        return source
    if isinstance(source, FilteringLogSource):
        return _TargetedFilteringSource(source, target)
    return (
        _TargetedScanningSource(source, target)
        if isinstance(source, ScanningLogSource)
        else TargetedSource(source, target)
    )


class TargetedSource:
    """A source whose names all carry its target in front."""

    def __init__(self, source: Source, target: str) -> None:
        self.source = source
        self.target = target
        self.name = f"{target}:{source.name}"

    @property
    def capabilities(self) -> frozenset[Capability]:
        return self.source.capabilities

    @property
    def services(self) -> frozenset[str]:
        return frozenset(self._named(service) for service in self.source.services)

    @property
    def sampling(self) -> str | None:
        return self.source.sampling

    @property
    def warnings(self) -> tuple[str, ...]:
        return tuple(f"{self.target}: {warning}" for warning in self.source.warnings)

    async def read(self, capabilities: Iterable[Capability], window: TimeRange) -> Recording:
        found = await self.source.read(capabilities, window)
        lists = {f.name: getattr(found, f.name) for f in fields(found)}
        renamed = {
            name: [self._renamed(row) for row in rows]
            for name, rows in lists.items()
            if name not in ("asked", "missed") and isinstance(rows, Sequence)
        }
        return replace(found, **renamed)  # type: ignore[arg-type]

    @property
    def query_languages(self) -> frozenset[QueryLanguage]:
        """Those of the source behind it; its answers come in its own names."""
        return self.source.query_languages if isinstance(self.source, QueryableSource) else frozenset()

    async def run_query(self, language: QueryLanguage, query: SourceQuery) -> QueryAnswer:
        return await cast("QueryableSource", self.source).run_query(language, query)

    def _named(self, name: str) -> str:
        return f"{self.target}:{name}"

    def _renamed(self, row: JSON) -> JSON:
        own = {column: self._named(value) for column in _NAMES if (value := getattr(row, column, None))}
        if hasattr(row, "object"):
            kind, slash, name = row.object.rpartition("/")
            own["object"] = f"{kind}{slash}{self._named(name)}"
        if isinstance(row, ObjectState):
            own["name"] = self._named(row.name)
        return replace(row, **own)


class _TargetedScanningSource(TargetedSource):
    """The same for a source whose log lines can be looked through one by one."""

    def scan_logs(self, *, baseline: bool = False, span: TimeRange | None = None) -> Iterator[LogLine]:
        assert isinstance(self.source, ScanningLogSource)  # noqa: S101 - made for such a source only
        return map(self._renamed, self.source.scan_logs(baseline=baseline, span=span))


class _TargetedFilteringSource(_TargetedScanningSource):
    """The same for a source that can look for something itself."""

    async def filter_logs(self, wanted: LogFilter, span: TimeRange) -> FilteredLogs | None:
        assert isinstance(self.source, FilteringLogSource)  # noqa: S101 - made for such a source only
        prefix = f"{self.target}:"
        if _may_match_prefix(prefix.casefold(), wanted.text.casefold()):
            return None
        service = wanted.service and wanted.service.removeprefix(prefix)
        if wanted.service and service == wanted.service:
            return None  # of another target
        found = await self.source.filter_logs(replace(wanted, service=service), span)
        if found is None:
            return None
        lines, of_service = (map(self._renamed, part) for part in (found.lines, found.of_service))
        return replace(found, lines=lines, of_service=of_service)


def _may_match_prefix(prefix: str, text: str) -> bool:
    """Whether the text may be found in a name only because of the target in front of it."""
    return text in prefix or any(prefix.endswith(text[:size]) for size in range(1, len(text) + 1))


def names_without_target(services: Iterable[str], sources: Iterable[Source]) -> Mapping[str, tuple[str, ...]]:
    """Service to the plain name that people use for it, where its full name carries a target."""
    targets = [target for source in sources if (target := getattr(source, "target", None))]
    plain = {service: strip_target(service, targets) for service in services}
    return {service: (name,) for service, name in plain.items() if name != service}
