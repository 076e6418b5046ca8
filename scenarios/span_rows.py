"""Requests through a scene: their sampled spans and log lines, and the aggregates per operation and per call."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random

from opsleuth.scenarios.case_folder import CaseFolderWriter, format_minute, format_utc, round_figure
from opsleuth.scenarios.fault_propagation import Disturbances, ServiceLevels, compute_levels, usual_rates
from opsleuth.scenarios.log_rows import HandledRequest, draw_arrivals, write_background, write_request
from opsleuth.scenarios.scene import Scene
from opsleuth.scenarios.synthetic_system import SyntheticService, SyntheticSystem

# Each service has two operations: share of its calls, weight of its own time (mean 1 over both).
_OPERATIONS = ((0.6, 0.8), (0.4, 1.3))
_SAMPLED = 0.04  # share of requests that the aggregates cover
_FOLLOWED = 2.5  # requests a minute that are followed span by span
_SCATTER = 0.35  # of the logarithm of one span's own time


def operation_names(service: SyntheticService) -> tuple[str, str]:
    """The names of a service's two operations."""
    path = service.name.split("-")[0].split(".")[0]
    if service.runtime == "postgres":
        return "SELECT app", "UPDATE app"
    if service.runtime == "redis":
        return "GET", "SET"
    return f"GET /{path}", f"POST /{path}"


def write_aggregates(scene: Scene, case: CaseFolderWriter) -> None:
    """Add `span_stats.csv` and `edge_latency.csv`: a fault-free window and the minutes around the onset."""
    timing = scene.timing
    _write_window_aggregates(scene, case, "baseline", timing.baseline, 10, Disturbances())
    first = math.floor(timing.onset / 60 - 5) * 60
    for start in range(first, int(timing.end), 60):
        _write_window_aggregates(scene, case, format_minute(start), start, 1, scene.effects)


def _write_window_aggregates(
    scene: Scene, case: CaseFolderWriter, name: str, start: float, minutes: int, effects: Disturbances
) -> None:
    world, random = scene.world, scene.random
    moment = start + 30 * minutes
    now, rates = compute_levels(world, effects, moment), usual_rates(world)
    traces = max(1, round(now[world.edge.name].rps * 60 * minutes * _SAMPLED))
    for service in world.services:
        if service.role != "external":
            count = traces * rates[service.name] / world.entry_rps
            gone = effects.at(service.name, "lost_children", moment)
            _write_operation_rows(random, case, (name, traces), service, now[service.name], count, gone)
    for call in world.calls:
        count = round(traces * rates[call.caller] / world.entry_rps * call.fan)
        gap = call.gap_ms + effects.at(f"{call.caller}>{call.callee}", "gap_ms", moment)
        # The median of n samples strays by about 1.25 / sqrt(n) of one sample's spread.
        gap *= math.exp(random.gauss(0, 0.4 / math.sqrt(max(1, count))))
        row = {"window": name, "caller": call.caller, "callee": call.callee}
        case.add("edge_latency.csv", **row, count=count, network_gap_ms_p50=round_figure(gap))


def _write_operation_rows(
    random: Random,
    case: CaseFolderWriter,
    window: tuple[str, int],
    service: SyntheticService,
    level: ServiceLevels,
    count: float,
    gone: float,
) -> None:
    """`window` is its name and its number of traces, `gone` the share of requests that end before their calls."""
    for operation, (share, weight) in zip(operation_names(service), _OPERATIONS, strict=True):
        calls = round(count * share)
        own = level.self_ms * weight * math.exp(random.gauss(0, 0.45 / math.sqrt(max(1, calls))))
        waiting = (level.latency_ms - level.self_ms) * (1 - gone)
        case.add(
            "span_stats.csv",
            window=window[0],
            service=service.name,
            operation=operation,
            count=calls,
            traces_in_window=window[1],
            duration_ms_p50=round_figure(own + waiting),
            self_ms_p50=round_figure(own),
            self_ms_mean=round_figure(own * math.exp(_SCATTER**2 / 2)),
            children_mean=round_figure(level.children * (1 - gone)),
        )


def write_requests(scene: Scene, case: CaseFolderWriter, *, spans: bool, baseline: bool) -> None:
    """Follow a steady sample of requests, from 20 minutes before the onset to the end.

    Adds their lines to `logs.jsonl` and, if `spans`, themselves to `traces.jsonl`; the same of ten fault-free
    minutes to the `_baseline` files, if `baseline`.
    """
    timing = scene.timing
    first = max(timing.start, timing.onset - 1200)
    for moment in draw_arrivals(scene.random, _FOLLOWED, first, timing.end - 15):
        _follow_request(scene, case, "", moment, scene.effects, spans=spans)
    write_background(scene, case, "logs.jsonl", first, timing.end)
    if baseline:
        for moment in draw_arrivals(scene.random, _FOLLOWED, timing.baseline, timing.baseline + 600):
            _follow_request(scene, case, "_baseline", moment, Disturbances(), spans=spans)
        write_background(scene, case, "logs_baseline.jsonl", timing.baseline, timing.baseline + 600)


def _follow_request(
    scene: Scene, case: CaseFolderWriter, suffix: str, moment: float, effects: Disturbances, *, spans: bool
) -> None:
    trace = _SyntheticTrace(
        scene.random, scene.world, effects, compute_levels(scene.world, effects, moment), moment
    )
    trace.server(scene.world.edge, None, moment)
    for row in trace.rows if spans else ():
        case.add(f"traces{suffix}.jsonl", **row)
    for service, end, took, failed in trace.handled:
        if end < scene.timing.end:
            request = HandledRequest(service, end, took, failed, trace.id if spans else None)
            write_request(scene, case, f"logs{suffix}.jsonl", request)


@dataclass(slots=True)
class _SyntheticTrace:
    random: Random
    world: SyntheticSystem
    effects: Disturbances
    now: dict[str, ServiceLevels]
    moment: float
    id: str = ""
    rows: list[dict[str, object]] = field(default_factory=list)
    handled: list[tuple[SyntheticService, float, float, bool]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.id = self._hex(32)

    def _hex(self, digits: int) -> str:
        return f"{self.random.getrandbits(4 * digits):0{digits}x}"

    def server(self, service: SyntheticService, parent: str | None, start: float) -> tuple[float, bool]:
        """Handle one request at `service`; return its duration (ms) and whether it failed."""
        span, weight = self._hex(16), self._operation(service)
        own = self.now[service.name].self_ms * weight[1] * math.exp(self.random.gauss(0, _SCATTER))
        wrong = service.fail_share + self.effects.at(service.name, "fail", self.moment)
        failed = self.random.random() < wrong
        row = self._row(span, parent, service.name, weight[0], start)
        elapsed = own * 0.4
        if not (failed and self.effects.at(service.name, "lost_children", self.moment) > 0):
            for callee, fan in self._calls(service):
                elapsed, lost = self._client(service, callee, fan, span, start, elapsed)
                failed = failed or lost
        elapsed += own * 0.6
        self._finish(row, elapsed, failed=failed)
        self.handled.append((service, start + elapsed / 1000, elapsed, failed))
        return elapsed, failed

    def _operation(self, service: SyntheticService) -> tuple[str, float]:
        index = 0 if self.random.random() < _OPERATIONS[0][0] else 1
        return operation_names(service)[index], _OPERATIONS[index][1]

    def _calls(self, service: SyntheticService) -> Iterator[tuple[SyntheticService, float]]:
        for call in self.world.callees(service.name):
            whole = int(call.fan) + (self.random.random() < call.fan % 1)
            for _ in range(whole):
                edge = f"{call.caller}>{call.callee}"
                gap = call.gap_ms + self.effects.at(edge, "gap_ms", self.moment)
                yield self.world.service(call.callee), gap

    def _client(
        self,
        caller: SyntheticService,
        callee: SyntheticService,
        gap: float,
        parent: str,
        start: float,
        elapsed: float,
    ) -> tuple[float, bool]:
        """One call; returns the time elapsed since `start` (ms) after it, and whether it failed."""
        span = self._hex(16)
        gap *= math.exp(self.random.gauss(0, 0.3))
        begin = start + elapsed / 1000
        row = self._row(span, parent, caller.name, f"call {callee.name}", begin)
        edge = f"{caller.name}>{callee.name}"
        fate, cut = self.random.random(), self.effects.at(edge, "cut", self.moment)
        failed = fate < cut + self.effects.at(edge, "fail", self.moment)
        took = 0.0
        if fate < cut:
            took = self.effects.at(edge, "wait_ms", self.moment) * math.exp(self.random.gauss(0, 0.1))
        elif not failed and callee.role != "external":
            took, failed = self.server(callee, span, begin + gap / 2000)
        elif not failed:
            took = self.now[callee.name].latency_ms * math.exp(self.random.gauss(0, _SCATTER))
            failed = self.random.random() < self.now[callee.name].fail_share
        self._finish(row, took + gap, failed=failed)
        return elapsed + took + gap, failed and self.random.random() < 0.75

    def _row(
        self, span: str, parent: str | None, service: str, operation: str, start: float
    ) -> dict[str, object]:
        row: dict[str, object] = {"trace_id": self.id, "span_id": span, "parent_id": parent}
        row |= {"service": service, "operation": operation, "start": format_utc(start)}
        self.rows.append(row)
        return row

    def _finish(self, row: dict[str, object], took: float, *, failed: bool) -> None:
        row |= {"duration_ms": round_figure(took), "status": "error" if failed else "ok"}
