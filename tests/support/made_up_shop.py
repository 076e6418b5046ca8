"""Random applications as a call graph with metrics: one fault at a known service, or none."""

from dataclasses import dataclass
from random import Random

from opsleuth.analysis.records import AlertFacts, MetricSeries, Recording, ServiceDependency, TimeRange

PERIOD = 60.0
PERIODS, ONSET = 30, 22
ALERT_METRIC = {"latency": "latency_average", "errors": "availability", None: "latency_average"}


@dataclass(frozen=True, slots=True)
class Shop:
    """Services by number (callees have higher ones), calls a request of each, seconds of own work, failed share."""

    names: list[str]
    calls: list[list[tuple[int, float]]]
    work: list[float]
    failing: list[float]

    def visits(self) -> list[float]:
        """Requests of each service a request of the first."""
        visits = [1.0] + [0.0] * (len(self.names) - 1)
        for caller, calls in enumerate(self.calls):
            for callee, count in calls:
                visits[callee] += visits[caller] * count
        return visits

    def latencies(self, work: list[float]) -> list[float]:
        """Seconds a request: own work and that of the callees, one after the other."""
        total = list(work)
        for caller in reversed(range(len(total))):
            total[caller] += sum(count * total[callee] for callee, count in self.calls[caller])
        return total

    def failures(self, failing: list[float]) -> list[float]:
        """Failed share of each service: its own, or any of its calls."""
        failed = list(failing)
        for caller in reversed(range(len(failed))):
            good = 1 - failing[caller]
            for callee, count in self.calls[caller]:
                good *= (1 - failed[callee]) ** count
            failed[caller] = 1 - good
        return failed


def build(source: Random, size: int = 14) -> Shop:
    """A shop whose services each have one or two callers among the few before them."""
    calls: list[list[tuple[int, float]]] = [[] for _ in range(size)]
    for callee in range(1, size):
        near = range(max(0, callee - 4), callee)
        for caller in source.sample(near, k=min(len(near), source.choice([1, 1, 2]))):
            calls[caller].append((callee, source.choice([0.3, 1.0, 1.0, 2.0])))
    names = [f"{source.getrandbits(32):08x}" for _ in range(size)]
    work = [source.lognormvariate(-4, 1) for _ in range(size)]
    return Shop(names, calls, work, [source.choice([0.0, 0.0, 0.0, 0.001, 0.003]) for _ in range(size)])


def incident(seed: int, fault: str | None) -> tuple[Recording, str]:
    """Half an hour of metrics with a fault of the given kind in its last minutes, and the faulty service."""
    source = Random(seed)
    shop = build(source)
    visits = shop.visits()
    faulty = source.choice([place for place in range(1, len(visits)) if visits[place] >= 0.05])
    slower = source.choice([0.3, 0.6, 1.5]) * shop.latencies(shop.work)[0] / visits[faulty]
    broken = source.choice([0.05, 0.2, 0.6])
    rate = source.choice([200, 1000, 5000])
    points: dict[tuple[str, str, str], list[tuple[float, float]]] = {}
    for period in range(PERIODS):
        work = [seconds * source.lognormvariate(0, 0.06) for seconds in shop.work]
        failing = list(shop.failing)
        if period >= ONSET and fault == "latency":
            work[faulty] += slower
        if period >= ONSET and fault == "errors":
            failing[faulty] += broken
        latencies, failed = shop.latencies(work), shop.failures(failing)
        demand = rate * source.lognormvariate(0, 0.1)
        for place, name in enumerate(shop.names):
            requests = int(demand * visits[place])
            lost = min(
                requests,
                max(0, round(source.gauss(requests * failed[place], (requests * failed[place]) ** 0.5))),
            )
            if requests:
                row = {
                    ("latency_average", "ms"): 1000 * latencies[place] * source.lognormvariate(0, 0.02),
                    ("requests", "count"): requests,
                    ("availability", "%"): 100 * (1 - lost / requests),
                }
                for (metric, unit), value in row.items():
                    if source.random() >= 0.03:  # monitoring loses samples
                        points.setdefault((name, metric, unit), []).append((period * PERIOD, value))
    alert = AlertFacts(
        "the shop is in trouble",
        service=shop.names[0],
        metric=ALERT_METRIC[fault],
        onset=(ONSET + 1) * PERIOD,
    )
    metrics = [
        MetricSeries(*key, [time for time, _ in row], [value for _, value in row])
        for key, row in points.items()
    ]
    topology = [
        ServiceDependency(shop.names[c], shop.names[e])
        for c, calls in enumerate(shop.calls)
        for e, _ in calls
    ]
    return Recording(alert, TimeRange(0.0, PERIODS * PERIOD), metrics=metrics, topology=topology), shop.names[
        faulty
    ]
