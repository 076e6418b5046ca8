"""What all live sources share: each time range is fetched once, a source that is down is left alone for a while.

A live source says what it can serve and fetches one capability at a time; this is the rest.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from opsleuth.analysis.records import AlertFacts, Recording, TimeRange
from opsleuth.configuration.secret_references import Vault
from opsleuth.state.clock import Clock
from opsleuth.tools.sources.object_memory import ObjectMemory
from opsleuth.tools.sources.source_protocols import Capability
from opsleuth.tools.spec import ToolError, UnavailableError

if TYPE_CHECKING:
    from opsleuth.configuration.source_settings import CommonSettings

# One read call of a run has ten seconds; what this source cannot tell by then must not cost the others' answer.
FETCH_SECONDS = 8.5
# What has passed is read once; the last minutes may still fill up.
_SETTLED = 120.0
_FRESH_SECONDS = 15.0
# What takes long to fetch is not fetched again for a few seconds' sake: it is fresh for this many times as long.
_FRESH_FACTOR = 5.0
# A source that did not answer is not asked again for this long: every tool would wait for it again.
_REST_SECONDS = 20.0
_MOST_KEPT = 12
# A server whose clock is off by more shifts its times against those of the other sources.
SKEW_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class FetchedRows:
    """Rows by field of the recording; `asked` are the requests behind them, `notes` what was wrong with them.

    `missed` says in words what could not be read: the rows say nothing about that.
    """

    rows: Mapping[str, Sequence[Any]]
    asked: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    missed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SourceCheck:
    """One thing that `doctor` looked at: how it is, and what to do where it is not well."""

    what: str
    state: Literal["ok", "warning", "failed"]
    text: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class SourceRuntime:
    """What a source is given besides its settings."""

    vault: Vault
    clock: Clock


@dataclass(slots=True)
class _CachedFetch:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    fetched: FetchedRows | None = None
    at: float = 0.0
    took: float = 0.0

    def is_fresh(self, now: float) -> bool:
        return now - self.at < max(_FRESH_SECONDS, _FRESH_FACTOR * self.took)


_Key = tuple[Capability, float, float]


class LiveSource(ABC):
    """Base of the live sources. Subclasses give `capabilities`, `fetch` and `check`."""

    capabilities: frozenset[Capability]
    fetch_seconds = FETCH_SECONDS

    def __init__(self, name: str, settings: "CommonSettings", surroundings: SourceRuntime) -> None:
        self.name = name
        self.target = settings.target
        self.clock = surroundings.clock
        self.vault = surroundings.vault
        self.sampling: str | None = None
        self._services = settings.services
        self._seen: set[str] = set(settings.services.values())
        self._notes: dict[str, None] = {}
        self._kept: dict[_Key, _CachedFetch] = {}
        self._down: tuple[float, str] | None = None
        self.memory: ObjectMemory | None = None

    @property
    def services(self) -> frozenset[str]:
        """The names that were met so far."""
        return frozenset(self._seen)

    @property
    def warnings(self) -> tuple[str, ...]:
        return tuple(f"{self.name}: {note}" for note in self._notes)

    @property
    def advances(self) -> bool:
        """Whether a fetch that ran out of time has got further, so that the next one goes on from there."""
        return False

    @abstractmethod
    async def fetch(self, capability: Capability, window: TimeRange) -> FetchedRows:
        """The rows of one capability that may bear on `window`. Raises ToolError."""

    @abstractmethod
    async def check(self) -> Sequence[SourceCheck]:
        """What works and what does not, for `doctor`. Raises ToolError where nothing does."""

    async def discover(self) -> None:  # noqa: B027 - most sources have nothing to learn
        """Learn the names of services, if that takes one short request. Raises ToolError."""

    def named(self, name: str) -> str:
        """The service that this source calls `name`."""
        service = self._services.get(name, name)
        self._seen.add(service)
        return service

    def names_of_service(self, service: str) -> Sequence[str]:
        """The names that this source has for a service: those that `named` makes it of."""
        own = [name for name, known in self._services.items() if known == service]
        return own if service in self._services else [*own, service]

    async def read(self, capabilities: Iterable[Capability], window: TimeRange) -> Recording:
        """Raises ToolError; TimeoutError where the source did not answer in time."""
        parts = [await self._once(c, window) for c in capabilities if c in self.capabilities]
        rows: dict[str, Any] = {name: found for part in parts for name, found in part.rows.items()}
        asked = tuple(line for part in parts for line in part.asked)
        missed = tuple(line for part in parts for line in part.missed)
        return Recording(alert=AlertFacts(text=""), window=window, asked=asked, missed=missed, **rows)

    async def _once(self, capability: Capability, window: TimeRange) -> FetchedRows:
        kept = self._place((capability, window.start, window.end))
        async with kept.lock:
            now = self.clock.monotonic()
            settled = window.end < self.clock.now().timestamp() - _SETTLED
            if kept.fetched is None or not (settled or kept.is_fresh(now)):
                kept.fetched, kept.at = await self._asked(capability, window), now
                kept.took = self.clock.monotonic() - now
                self._notes |= dict.fromkeys((*kept.fetched.notes, *kept.fetched.missed))
            return kept.fetched

    def fetched_rows(self, capability: Capability, window: TimeRange) -> Sequence[Any]:
        """What was fetched of this capability for exactly this window; nothing where it was not asked for yet."""
        kept = self._kept.get((capability, window.start, window.end))
        return kept.fetched.rows.get(capability, ()) if kept and kept.fetched else ()

    async def await_fetched_rows(self, capability: Capability, window: TimeRange) -> Sequence[Any]:
        """As `fetched_rows`, after a fetch that is under way just now."""
        if kept := self._kept.get((capability, window.start, window.end)):
            async with kept.lock:
                pass
        return self.fetched_rows(capability, window)

    def _place(self, key: _Key) -> _CachedFetch:
        if key not in self._kept and len(self._kept) >= _MOST_KEPT:
            del self._kept[next(iter(self._kept))]
        return self._kept.setdefault(key, _CachedFetch())

    async def _asked(self, capability: Capability, window: TimeRange) -> FetchedRows:
        now = self.clock.monotonic()
        if self._down and now - self._down[0] < _REST_SECONDS:
            raise UnavailableError(f"{self.name} is left alone for {_REST_SECONDS:g} s: {self._down[1]}")
        try:
            async with asyncio.timeout(self.fetch_seconds):
                fetched = await self.fetch(capability, window)
        except TimeoutError as error:
            text = str(error) or f"{self.name} gave no answer within {self.fetch_seconds:g} s"
            if not self.advances:
                self._down = (self.clock.monotonic(), text)
            raise TimeoutError(text) from None
        except UnavailableError as error:
            self._down = (now, str(error))
            raise
        self._down = None
        return fetched


def failed_check(what: str, error: ToolError, remedy: str = "") -> SourceCheck:
    """A check that failed with this error."""
    return SourceCheck(what, "failed", str(error), remedy)
