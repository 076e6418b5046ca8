"""What the configuration says of services, as a source: whom each calls."""

from collections.abc import Sequence

from opsleuth.analysis.records import Dependency, Span
from opsleuth.tools.sources.base import Capability
from opsleuth.tools.sources.live import Check, Fetched, LiveSource, Surroundings
from opsleuth.tools.sources.settings import Declared


class DeclaredSource(LiveSource):
    """The source of kind `declared`."""

    capabilities: frozenset[Capability] = frozenset({"topology"})

    def __init__(self, name: str, settings: Declared, surroundings: Surroundings) -> None:
        super().__init__(name, settings, surroundings)
        self._edges = [
            Dependency(self.named(caller), self.named(callee))
            for caller, callees in settings.calls.items()
            for callee in callees
        ]

    async def fetch(self, capability: Capability, window: Span) -> Fetched:
        del capability, window
        return Fetched({"topology": self._edges})

    async def check(self) -> Sequence[Check]:
        return [Check("topology", "ok", f"{len(self._edges)} calls between services are declared")]
