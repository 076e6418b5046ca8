"""A source that holds its rows in memory: for tests, demonstrations and generated incidents."""

from collections.abc import Iterable
from dataclasses import replace

from opsleuth.analysis.records import Recording, TimeRange
from opsleuth.tools.sources.source_protocols import Capability

FIELDS: dict[Capability, tuple[str, ...]] = {
    "metrics": ("metrics", "metrics_baseline"),
    "logs": ("logs", "logs_baseline", "patterns"),
    "traces": ("spans", "spans_baseline", "span_stats", "edges"),
    "topology": ("topology",),
    "changes": ("changes",),
    "events": ("events",),
    "objects": ("objects",),
    "statements": ("statements",),
}
"""What is evidence, by the kind of source."""
ROWS = tuple(field for fields in FIELDS.values() for field in fields)
SERVED: dict[Capability, tuple[str, ...]] = {**FIELDS, "runbooks": ("runbooks",)}
"""Advice as well, which is not evidence."""


class MemorySource:
    """Serves the rows of one recording: a list that is None is a capability that it does not have."""

    def __init__(
        self,
        recording: Recording,
        *,
        name: str = "memory",
        services: Iterable[str] = (),
        sampling: str | None = None,
    ) -> None:
        self.name = name
        self.services = frozenset(services)
        self.sampling = sampling
        self.warnings: tuple[str, ...] = ()
        self._recording = recording

    @property
    def capabilities(self) -> frozenset[Capability]:
        return frozenset(c for c, fields in SERVED.items() if any(self._has(field) for field in fields))

    async def read(self, capabilities: Iterable[Capability], window: TimeRange) -> Recording:
        wanted = {field for capability in capabilities for field in SERVED.get(capability, ())}
        every = (field for fields in SERVED.values() for field in fields)
        hidden = {field: None for field in every if field not in wanted}
        return replace(self._recording, window=window, **hidden)  # type: ignore[arg-type]

    def _has(self, field: str) -> bool:
        return getattr(self._recording, field) is not None
