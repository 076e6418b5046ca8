"""What database sources share: the database is a service itself, and mostly reports its present state."""

from typing import Generic, TypeVar

from opsleuth.analysis.records import TimeRange
from opsleuth.configuration.database_settings import DatabaseSettings
from opsleuth.tools.sources.live_source import LiveSource, SourceRuntime
from opsleuth.tools.sources.source_protocols import Capability

# What a database says is said of now; a window that ended longer ago it does not cover.
NOW_SECONDS = 900.0

S = TypeVar("S", bound=DatabaseSettings)


class DatabaseSource(LiveSource, Generic[S]):
    """Base of the sources of databases. `database` is the name of the service."""

    capabilities: frozenset[Capability] = frozenset({"statements", "objects", "events"})

    def __init__(self, name: str, settings: S, surroundings: SourceRuntime) -> None:
        super().__init__(name, settings, surroundings)
        self._settings = settings
        self.database = self.named(settings.name or name)

    def past(self, window: TimeRange) -> str:
        """When the window ended, in words; empty where what is said of now covers its end."""
        now = self.clock.now().timestamp()
        return "" if window.end > now - NOW_SECONDS else f"ended {(now - window.end) / 60:,.0f} minutes ago"
