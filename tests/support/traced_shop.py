"""A made-up shop of three services, told in spans and log lines: `front` asks `cart` and `pay`, `cart` reads.

One fault at a time, from the onset on: `slow_way` (the network into a service), `starved` (a process that gets no
CPU: its own work and its ways out take long), `slow_work` (one operation), `breaks_off` (work stops half way, no
error reported), `fails` (as `breaks_off`, with failed spans and a line of failure). `None` is a quiet day.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

from opsleuth.analysis.records import (
    AlertFacts,
    LogLine,
    Recording,
    ServiceDependency,
    TimeRange,
    TraceSpan,
)

ONSET = 1_700_000_000.0
SLOW_MS = 400.0
TOPOLOGY = (ServiceDependency("front", "cart"), ServiceDependency("front", "pay"))


@dataclass
class Stretch:
    """Spans and lines of one stretch of time, as they are written."""

    dice: random.Random
    fault: str | None
    service: str
    spans: list[TraceSpan] = field(default_factory=list)
    lines: list[LogLine] = field(default_factory=list)

    def has(self, fault: str, service: str) -> bool:
        """Whether this fault is at work at this service."""
        return self.fault == fault and self.service == service

    def request(self, trace: str, start: float) -> None:
        """One page with its two calls."""
        self.line("front", "page opened by user", start)
        cart = self.call(trace, "cart", start + 0.002)
        pay = self.call(trace, "pay", start + 0.003 + cart / 1000)
        own = 4 * self.dice.uniform(0.9, 1.1) + (SLOW_MS if self.has("starved", "front") else 0)
        self.span(trace, "root", None, "front", "page", start, own + cart + pay)
        self.line("front", "page sent after ms", start + (own + cart + pay) / 1000)

    def call(self, trace: str, service: str, start: float) -> float:
        """Client and server side of one call; milliseconds on the client's clock."""
        server = self.serve(trace, service, start + 0.001)
        way = 3 * self.dice.uniform(0.9, 1.1)
        slow = self.has("slow_way", service) or self.has("starved", service) or self.has("starved", "front")
        way += SLOW_MS if slow else 0
        self.span(trace, f"to {service}", "root", "front", f"ask {service}", start, server + way)
        return server + way

    def serve(self, trace: str, service: str, start: float) -> float:
        """The work of a service: a first step, then a second one that follows unless it breaks off."""
        self.line(service, f"{service} got request", start)
        broken = self.has("breaks_off", service) or self.has("fails", service)
        took = 5 * self.dice.uniform(0.9, 1.1)
        if self.has("slow_work", service) or self.has("starved", service):
            took += SLOW_MS
        status = "ERROR" if self.has("fails", service) else None
        self.span(trace, f"in {service}", f"to {service}", service, "handle", start, took + 2, status)
        if broken:
            if status:
                self.line(service, f"{service}: IllegalStateException in request", start, "ERROR")
            return took + 2
        self.span(trace, f"read {service}", f"in {service}", service, "read", start + took / 1000, 1)
        self.line(service, f"{service} answered request", start + took / 1000)
        return took + 2

    def span(
        self,
        trace: str,
        span: str,
        parent: str | None,
        service: str,
        operation: str,
        start: float,
        ms: float,
        status: str | None = None,
    ) -> None:
        """Write one span."""
        self.spans.append(TraceSpan(trace, span, parent, service, operation, start, ms, status))

    def line(self, service: str, text: str, time: float, level: str = "INFO") -> None:
        """Write one line; the number in it differs from line to line."""
        self.lines.append(LogLine(time, service, f"{text} {self.dice.randrange(10**6)}", level))


def starts(first: float, last: float, count: int) -> Iterator[tuple[int, float]]:
    """Evenly spread times."""
    return ((i, first + i * (last - first) / count) for i in range(count))


def incident(fault: str | None, service: str, *, seed: int = 0, requests: int = 40) -> Recording:
    """One recording: an hour earlier a quiet stretch, four quiet minutes, then four with the fault."""
    dice = random.Random(seed)
    usual, before, now = Stretch(dice, None, ""), Stretch(dice, None, ""), Stretch(dice, fault, service)
    for i, start in starts(ONSET - 3600, ONSET - 3360, requests):
        usual.request(f"u{i}", start)
    for i, start in starts(ONSET - 240, ONSET - 5, requests):
        before.request(f"b{i}", start)
    for i, start in starts(ONSET, ONSET + 240, requests):
        now.request(f"n{i}", start)
    return Recording(
        alert=AlertFacts("pages are slow or fail", service="front", onset=ONSET),
        window=TimeRange(ONSET - 1800, ONSET + 300),
        logs=before.lines + now.lines,
        logs_baseline=usual.lines,
        spans=before.spans + now.spans,
        spans_baseline=usual.spans,
        topology=TOPOLOGY,
    )
