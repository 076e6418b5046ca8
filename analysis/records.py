"""The rows that sources deliver and detectors read, whatever backend they came from.

Plain dataclasses, of which nobody changes a field: a case holds hundreds of thousands of rows, and validation happens
once, in the source that parsed them. All are frozen but `LogLine` and `TraceSpan`: millions of those are made, and a
frozen one takes six times as long to make. Every time is a float of seconds since the Unix epoch, UTC. Every duration carries
its unit in its name. `None` means "not recorded", never zero. `extra` holds columns beyond the format.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class TimeRange:
    """A half-open time range `[start, end)`, seconds since the epoch."""

    start: float
    end: float


@dataclass(frozen=True, slots=True)
class MetricSeries:
    """Samples of one metric of one service (and instance), ordered by time.

    `times` and `values` have the same length; `unit` is the source's own word (`s`, `%`, `count/5min`).
    """

    service: str
    metric: str
    unit: str
    times: Sequence[float]
    values: Sequence[float]
    instance: str | None = None


@dataclass(slots=True, unsafe_hash=True)
class LogLine:
    """One log line. `time` is None where the recorded time supports no claim about time.

    `context` holds the line's words outside the message (logger, thread, other fields), one to a row: a search looks
    there as well.
    """

    time: float | None
    service: str
    message: str
    level: str | None = None
    pod: str | None = None
    namespace: str | None = None
    host: str | None = None
    trace_id: str | None = None
    previous: bool = False
    extra: Mapping[str, Any] | None = None
    context: str | None = None


@dataclass(frozen=True, slots=True)
class LogPatternCount:
    """How often one log template occurred in one window (`baseline`, or the start of its minute)."""

    window: str
    service: str
    level: str | None
    pattern: str
    count: int
    traces_in_window: int | None


@dataclass(slots=True, unsafe_hash=True)
class TraceSpan:
    """One span of a distributed trace.

    `kind` is client, server, producer, consumer or internal, `peer` whom a client's span was sent to: a service, or an
    address and port.
    """

    trace_id: str
    span_id: str
    parent_id: str | None
    service: str
    operation: str
    start: float
    duration_ms: float
    status: str | None = None
    kind: str | None = None
    peer: str | None = None


@dataclass(frozen=True, slots=True)
class SpanStat:
    """One operation of one service in one window (`baseline`, or the start of its minute), over all traces."""

    window: str
    service: str
    operation: str
    count: int
    traces_in_window: int | None
    duration_ms_p50: float | None
    self_ms_p50: float | None
    self_ms_mean: float | None
    children_mean: float | None


@dataclass(frozen=True, slots=True)
class EdgeLatency:
    """Client span minus server span of one caller-callee pair in one window."""

    window: str
    caller: str
    callee: str
    count: int
    network_gap_ms_p50: float | None


@dataclass(frozen=True, slots=True)
class ServiceDependency:
    """`caller` calls `callee`."""

    caller: str
    callee: str


@dataclass(frozen=True, slots=True)
class ServiceChange:
    """A change that people or pipelines made: deploy, config, scale, flag, migration, rollback."""

    time: float
    service: str
    kind: str
    summary: str
    version: str | None = None
    author: str | None = None
    diff: str | None = None
    extra: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class GradedChange:
    """A change with its grade (`cause`, `coincides`, `innocent`), `why` it has it, and how sure that is (`score`).

    `place` is the file and line where a stack trace meets its diff.
    """

    change: ServiceChange
    grade: str
    why: str
    score: float = 0.0
    place: str | None = None


@dataclass(frozen=True, slots=True)
class PlatformEvent:
    """One event of the platform (Kubernetes, RDS, systemd): `time` is its last, `first_time` its first occurrence."""

    time: float
    source: str
    object: str
    type: str
    reason: str
    message: str
    count: int | None = None
    first_time: float | None = None
    extra: Mapping[str, Any] | None = None

    @property
    def began(self) -> float | None:
        """When it first happened as far as it is recorded; None where only an undated age tells of it."""
        if (self.extra or {}).get("undated"):
            return None
        return self.time if self.first_time is None else self.first_time


@dataclass(frozen=True, slots=True)
class ObjectState:
    """One object's state as read at one time; `status` is a document, or the text that a tool printed."""

    time: float | None
    kind: str
    name: str
    status: Mapping[str, Any] | str
    namespace: str | None = None
    spec: Mapping[str, Any] | str | None = None
    labels: Mapping[str, Any] | None = None
    extra: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class StatementLoad:
    """One SQL statement's load as read at one time; `load` is in `load_unit` (often average active sessions)."""

    time: float | None
    database: str
    statement: str
    calls: float | None = None
    calls_per_sec: float | None = None
    mean_ms: float | None = None
    total_ms: float | None = None
    load: float | None = None
    load_unit: str | None = None
    waits: Mapping[str, float] = field(default_factory=dict)
    rows: float | None = None
    extra: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class AlertFacts:
    """What the alert itself says. `onset` is the start as the alert claims it, `fired` when it was sent.

    `stated` is the time since when a question says that it fails: near the onset as people noticed it.
    """

    text: str
    service: str | None = None
    metric: str | None = None
    severity: str | None = None
    onset: float | None = None
    fired: float | None = None
    stated: float | None = None


@dataclass(frozen=True, slots=True)
class Runbook:
    """What people wrote down for a kind of case: Markdown, and what it is for. It is advice, no evidence."""

    name: str
    title: str
    text: str
    services: tuple[str, ...] = ()
    alerts: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Recording:
    """Everything that a detector may look at. A list that is None is a source that is not available.

    `asked` are the requests behind the rows, as they were sent, `missed` what a source that answered could not tell:
    for whoever repeats them or writes about what is absent, not for detectors.
    """

    alert: AlertFacts
    window: TimeRange
    metrics: Sequence[MetricSeries] | None = None
    metrics_baseline: Sequence[MetricSeries] | None = None
    logs: Sequence[LogLine] | None = None
    logs_baseline: Sequence[LogLine] | None = None
    patterns: Sequence[LogPatternCount] | None = None
    spans: Sequence[TraceSpan] | None = None
    spans_baseline: Sequence[TraceSpan] | None = None
    span_stats: Sequence[SpanStat] | None = None
    edges: Sequence[EdgeLatency] | None = None
    topology: Sequence[ServiceDependency] | None = None
    changes: Sequence[ServiceChange] | None = None
    events: Sequence[PlatformEvent] | None = None
    objects: Sequence[ObjectState] | None = None
    statements: Sequence[StatementLoad] | None = None
    runbooks: Sequence[Runbook] | None = None
    asked: tuple[str, ...] = ()
    missed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Finding:
    """What one detector says about one service, with the figures it rests on.

    `kind` is one of the incident kinds (cpu, errors, network_delay, …), `size` the strength in the
    detector's own robust units (0 = as usual; comparable inside one detector only), `onset` when it began
    (None if the data has no time for it), `text` one sentence with its figures, `figures` the same figures
    by name (`baseline`, `incident`, `unit`, …) for whoever recomputes the claim. `signal` names the kind of
    evidence (`metrics`, `traces`, `logs`, `changes`, `events`, `objects`, `statements`). `direction` is
    `cause` for what points at the service itself, `victim` for what only shows that it suffers, `healthy` for
    what says that it is as usual, or is so again (recovered, stale alert), `faint` for what is too small to accuse.
    """

    detector: str
    signal: str
    service: str
    kind: str
    size: float
    text: str
    figures: Mapping[str, Any]
    onset: float | None = None
    direction: str = "cause"
    metric: str | None = None


@dataclass(frozen=True, slots=True)
class Suspect:
    """One ranked service: its score, the kind of fault, and the findings that put it there, best first."""

    service: str
    kind: str
    score: float
    findings: Sequence[Finding]
    metric: str | None = None
    onset: float | None = None
    explained_by: str | None = None


@dataclass(frozen=True, slots=True)
class Ranking:
    """The combined picture.

    `verdict` is `cause_found`, `healthy` or `inconclusive`; `causes` says how many of the first suspects are
    causes of their own; `propagation` holds pairs of (cause, victim); `notes` says in words why each is where
    it is and what could not be looked at. `changes` are those that may have set it off, the surest first.
    `also_moved` is what else left its range on the first suspect, `later` what began elsewhere only after the trouble
    that the question reports, `earlier` what had healed before it began.
    """

    verdict: str
    suspects: Sequence[Suspect]
    causes: int
    propagation: Sequence[tuple[str, str]]
    notes: Sequence[str]
    changes: Sequence[GradedChange] = ()
    also_moved: Sequence[Finding] = ()
    later: Sequence[Finding] = ()
    earlier: Sequence[Finding] = ()
