"""A small shop whose parts go dark, fail or refuse, as a recording; and whom the ranking blames for it."""

from cluster_objects import ONSET, WINDOW, deployment, pod

from opsleuth.analysis.cluster.entities import objects_behind
from opsleuth.analysis.ranking import rank_findings, run_detectors
from opsleuth.analysis.records import LogLine, MetricSeries, Ranking, Recording

TIMES = [WINDOW.start + 60.0 * step for step in range(60)]
LATE = [time for time in TIMES if time >= ONSET]


def make_series(name: str, metric: str, usual: float, now: float, unit: str = "") -> MetricSeries:
    values = [
        (now if time >= ONSET else usual) * (1.0 + 0.01 * (step % 5)) for step, time in enumerate(TIMES)
    ]
    return MetricSeries(name, metric, unit, TIMES, values)


def make_requests(name: str, usual: float, now: float) -> MetricSeries:
    return make_series(name, "request_rate", usual, now, "requests/s")


def make_failures(name: str, usual: float, now: float) -> MetricSeries:
    return make_series(name, "error_rate", usual, now, "percent")


def make_errors(name: str, message: str, every: int = 1) -> list[LogLine]:
    return [LogLine(time + 1.0, name, message, level="error") for time in LATE[::every]]


def rank_recording(recording: Recording) -> Ranking:
    return rank_findings(recording, run_detectors(recording))


def find_blamed(recording: Recording) -> tuple[str, str, str]:
    """Service and kind of the first cause, and the object behind it."""
    ranking = rank_recording(recording)
    assert ranking.causes
    first = ranking.suspects[0]
    found = objects_behind(ranking.suspects, recording).get((first.service, first.kind))
    return first.service, first.kind, str(found.ref) if found else ""


REFUSED = "14 UNAVAILABLE: connect ECONNREFUSED 172.20.0.9:80"
CALLS = [("web", "cart"), ("web", "ads"), ("cart", "cart-db"), ("stock", "cart-db")]
APPS = ("web", "cart", "ads", "stock")
SHOP = [d for n, app in enumerate(APPS, 1) for d in (deployment(app), pod(app, number=n))]
GOING_DARK = [
    make_requests("web", 20.0, 20.0),
    make_failures("web", 0.1, 40.0),
    make_requests("cart", 8.0, 0.0),
    make_requests("ads", 8.0, 8.0),
]


# As `kubectl describe service` prints it.
DESCRIBED_SERVICE = """Name:                     cart
Namespace:                store
Labels:                   app=cart
                          team=shop
Selector:                 app=cart-v2
Type:                     ClusterIP
Port:                     http  80/TCP
TargetPort:               8080/TCP
Endpoints:                <none>
Internal Traffic Policy:  Cluster
"""
