"""The times that a dump of a cluster carries: it is as of the newest of them, whenever its file was written or copied."""

from collections.abc import Iterator

from opsleuth.state.json_types import JSON
from opsleuth.tools.sources.kube_rows import epoch_from_rfc3339

# What the API server or a component wrote as a moment that had come; ends that lie ahead (deletion, expiry) are not here.
_PAST_TIMES = frozenset(
    {
        "completionTime", "creationTimestamp", "eventTime", "finishedAt", "firstTimestamp", "lastHeartbeatTime",
        "lastObservedTime", "lastProbeTime", "lastScheduleTime", "lastSuccessfulTime", "lastTimestamp",
        "lastTransitionTime", "lastUpdateTime", "renewTime", "startTime", "startedAt", "time",
    }
)  # fmt: skip


def find_newest_time(document: JSON) -> float | None:
    """Seconds since the epoch of the newest moment that the document says has come; None where it tells none."""
    return max(_list_past_times(document), default=None)


def _list_past_times(part: JSON) -> Iterator[float]:
    pending = [part]
    while pending:
        found = pending.pop()
        if isinstance(found, list):
            pending += found
        elif isinstance(found, dict):
            for name, value in found.items():
                if isinstance(value, dict | list):
                    pending.append(value)
                elif name in _PAST_TIMES and (moment := epoch_from_rfc3339(value)) is not None:
                    yield moment
