"""Metrics, logs, statements and changes of the world, as they follow from what was applied and when.

The same moment always gives the same row: noise is drawn from the moment itself, so that two readers agree.
Rows have the columns of a case folder.
"""

from collections.abc import Iterable, Iterator
from random import Random
from typing import Any

from opsleuth.scenarios.case_folder import format_utc, parse_epoch
from opsleuth.scenarios.orders_incident import (
    BAD_VERSION,
    CALLS,
    change_rows,
    log_rows,
    metric_rows,
    rolled_out_share,
    statement_rows,
)
from opsleuth.scenarios.plane.ledger import AppliedOperation
from opsleuth.scenarios.plane.state import RELEASE_AGE, PlaneWorld, ServiceState

# From the release to the moment when its first pod serves, seconds.
_ROLL_OUT_DELAY = 160.0
_REFERENCE_REPLICAS = 3
_SHARE_CAPTURED = 0.5
"""Of the pods: below, the release has not served for long enough to stand among the statements of 15 minutes."""
CAPTURE_SECONDS = 900
"""Between two captures of the statements, counted from the world's birth: so every demo has the same before and after."""


def bad_release_share(orders: ServiceState, moment: float) -> float:
    """The share of orders-api's pods that run the bad release at `moment`; a rollback takes effect at once."""
    if orders.version_at(moment) != BAD_VERSION:
        return 0.0
    since = max(at for at, version in orders.history if at <= moment and version == BAD_VERSION)
    return rolled_out_share(moment - since - _ROLL_OUT_DELAY)


def generate_metrics(world: PlaneWorld, start: float, end: float, step: float) -> Iterator[dict[str, Any]]:
    """Samples every `step` seconds of `[start, end]`, and at `end` itself: the reading of that moment."""
    for moment in _sample_moments(start, end, step):
        share = bad_release_share(world.services["orders-api"], moment)
        for row in metric_rows(Random(f"metrics/{moment:.3f}"), moment, share):
            service = world.services[row["service"]]
            if service.deleted_at is None or moment < service.deleted_at:
                yield _scale_by_replicas(row, service)


def _scale_by_replicas(row: dict[str, Any], service: ServiceState) -> dict[str, Any]:
    if row["metric"] == "cpu" and service.replicas:
        row["value"] = min(100.0, row["value"] * _REFERENCE_REPLICAS / service.replicas)
    return row


def _sample_moments(start: float, end: float, step: float) -> Iterator[float]:
    first = -(-start // step) * step
    yield from (first + i * step for i in range(int((end - first) // step) + 1) if first + i * step < end)
    yield end


def generate_logs(world: PlaneWorld, start: float, end: float) -> Iterator[dict[str, Any]]:
    """The lines of `[start, end]`, in order."""
    for minute in range(int(start // 60) * 60, int(end) + 1, 60):
        bad = bad_release_share(world.services["orders-api"], minute) > 0
        rows = log_rows(Random(f"logs/{minute}"), minute, bad=bad)
        yield from sorted(_rows_in_span(rows, start, end), key=lambda row: parse_epoch(row["timestamp"]))


def _rows_in_span(rows: Iterable[dict[str, Any]], start: float, end: float) -> Iterator[dict[str, Any]]:
    return (row for row in rows if start <= parse_epoch(row["timestamp"]) <= end)


def generate_statements(world: PlaneWorld, start: float, end: float) -> Iterator[dict[str, Any]]:
    """Captures every 15 minutes of `[start, end]`, and one at `end`, each as the statements are at that moment."""
    shift = world.born % CAPTURE_SECONDS
    for since in _sample_moments(start - shift, end - shift, CAPTURE_SECONDS):
        moment = since + shift
        bad = bad_release_share(world.services["orders-api"], moment) > _SHARE_CAPTURED
        yield from statement_rows(Random(f"statements/{moment:.3f}"), moment, bad=bad)


def generate_changes(world: PlaneWorld, start: float, end: float) -> Iterator[dict[str, Any]]:
    """What people changed before this world was born, and what was applied since, in `[start, end]`."""
    rows = [
        *change_rows(world.born - RELEASE_AGE),
        *(_change_row(a) for a in world.applications if a.operation in _KINDS),
    ]
    return _rows_in_span(rows, start, end)


_KINDS = {"rollback": "rollback", "scale": "scale", "flag": "flag", "restart": "config"}


def _change_row(application: AppliedOperation) -> dict[str, Any]:
    arguments = ", ".join(f"{name}={value}" for name, value in application.arguments.items())
    return {
        "timestamp": format_utc(application.at),
        "service": application.target,
        "kind": _KINDS[application.operation],
        "summary": f"{application.operation} of {application.target} {arguments}".strip(),
        "version": application.arguments.get("version"),
    }


def list_topology() -> list[dict[str, str]]:
    """Who calls whom."""
    return [{"caller": caller, "callee": callee} for caller, callee in CALLS]
