"""Figures for Prometheus: what was asked of this process, and how the queue and the runs stand."""

from collections import defaultdict
from collections.abc import Iterator, Mapping

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
"""Upper bounds of the histogram of answer times, in seconds."""
METHODS = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"})
"""All others are counted as one: the caller may send any word, and each would make a series."""
_HTTP = "opsleuth_http_request_seconds"


class RequestMetrics:
    """Requests of this process by method, address and status, with their seconds."""

    def __init__(self) -> None:
        self._buckets: dict[tuple[str, str, int], list[int]] = defaultdict(lambda: [0] * (len(BUCKETS) + 1))
        self._seconds: dict[tuple[str, str, int], float] = defaultdict(float)

    def add(self, method: str, path: str, status: int, seconds: float) -> None:
        """Count one request; `path` is the address as declared, not as called: ids would make a series each."""
        key = (method if method in METHODS else "other", path, status)
        place = next((i for i, bound in enumerate(BUCKETS) if seconds <= bound), len(BUCKETS))
        self._buckets[key][place] += 1
        self._seconds[key] += seconds

    def lines(self) -> Iterator[str]:
        """In Prometheus' text format."""
        yield f"# HELP {_HTTP} Seconds until a request was answered."
        yield f"# TYPE {_HTTP} histogram"
        for (method, path, status), counts in sorted(self._buckets.items()):
            labels = f'method="{method}",path="{path}",status="{status}"'
            total = 0
            for bound, count in zip((*map(str, BUCKETS), "+Inf"), counts, strict=True):
                total += count
                yield f'{_HTTP}_bucket{{{labels},le="{bound}"}} {total}'
            yield f"{_HTTP}_sum{{{labels}}} {self._seconds[method, path, status]:.6f}"
            yield f"{_HTTP}_count{{{labels}}} {total}"


def format_gauge(name: str, words: str, values: Mapping[str, float], label: str = "") -> Iterator[str]:
    """One gauge, a line for each value of its label."""
    yield f"# HELP {name} {words}"
    yield f"# TYPE {name} gauge"
    for key, value in sorted(values.items()):
        yield f'{name}{{{label}="{key}"}} {value:g}' if label else f"{name} {value:g}"
