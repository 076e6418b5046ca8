"""A source of the configured topology: which services each service calls."""

from collections.abc import Sequence

from opsleuth.analysis.records import ServiceDependency, TimeRange
from opsleuth.configuration.source_settings import DeclaredTopologySettings
from opsleuth.tools.sources.live_source import FetchedRows, LiveSource, SourceCheck, SourceRuntime
from opsleuth.tools.sources.source_protocols import Capability


class DeclaredSource(LiveSource):
    """The source of kind `declared`."""

    capabilities: frozenset[Capability] = frozenset({"topology"})

    def __init__(self, name: str, settings: DeclaredTopologySettings, surroundings: SourceRuntime) -> None:
        super().__init__(name, settings, surroundings)
        self._edges = [
            ServiceDependency(self.named(caller), self.named(callee))
            for caller, callees in settings.calls.items()
            for callee in callees
        ]

    async def fetch(self, capability: Capability, window: TimeRange) -> FetchedRows:
        del capability, window
        return FetchedRows({"topology": self._edges})

    async def check(self) -> Sequence[SourceCheck]:
        return [SourceCheck("topology", "ok", f"{len(self._edges)} calls between services are declared")]
