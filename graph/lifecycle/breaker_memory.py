"""The circuit breakers of a run's sources: shared by the runs of one process, and taken up again by a resume."""

from collections.abc import Callable
from datetime import datetime

from opsleuth.checkpoints.store import Store
from opsleuth.graph.lifecycle.first_state import RunSettings
from opsleuth.state.calls import ResultStatus
from opsleuth.state.canonical_json import canonical_sha256
from opsleuth.state.clock import Clock
from opsleuth.tools.circuit_breaker import COUNTED_FAILURES, UNCOUNTED_STATUSES, CircuitBreaker
from opsleuth.tools.executor import breaker_key
from opsleuth.tools.registry import Toolbox
from opsleuth.tools.sources.source_protocols import RunSources

BreakerFor = Callable[[RunSettings, Clock], CircuitBreaker]


def make_own_breaker(_: RunSettings, clock: Clock) -> CircuitBreaker:
    """A breaker that this attempt alone uses."""
    return CircuitBreaker(clock)


class SharedBreakers:
    """One breaker for all runs of this process that read the same sources: what one run found dead is dead for the next."""

    def __init__(self) -> None:
        self._by_sources: dict[str, CircuitBreaker] = {}

    def breaker_for(self, settings: RunSettings, clock: Clock) -> CircuitBreaker:
        """The breaker of everything that these settings read and change."""
        named = [settings.case, settings.sources, settings.platform, settings.policy]
        return self._by_sources.setdefault(canonical_sha256(named), CircuitBreaker(clock))


def restore_breaker(
    breaker: CircuitBreaker, store: Store, run: str, toolbox: Toolbox, sources: RunSources
) -> None:
    """Count again the failures that earlier attempts of the run ended with: a dead tool is not tried three times more."""
    now = datetime.fromisoformat(store.events.now())
    failing: dict[str, tuple[int, str, float]] = {}
    for event in store.events.read(run, types={"tool.completed"}):
        data = event["data"]
        status = ResultStatus(data["status"])
        if not data.get("tries") or status in UNCOUNTED_STATUSES:
            continue
        if status not in COUNTED_FAILURES:
            failing.pop(data["tool"], None)
            continue
        ago = (now - datetime.fromisoformat(event["ts"])).total_seconds()
        failing[data["tool"]] = failing.get(data["tool"], (0,))[0] + 1, str(data["headline"])[:200], ago
    for name, (failures, text, ago) in failing.items():
        if spec := toolbox.known(name):
            breaker.restore(breaker_key(spec, sources), failures, text, max(ago, 0.0))
