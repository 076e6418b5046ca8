"""How requests are served, from spans and the lines logged on the way."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from opsleuth.analysis import failed_spans, logdiff, missing_spans, network_gaps, slow_operations
from opsleuth.analysis.records import Finding, Recording
from opsleuth.analysis.span_statistics import SpanStatistics, summarize_spans

# Share of the usual calls under which a callee is no longer asked as it was.
ASKED = 0.5
# A loss elsewhere explains one only if it is at least half as large.
COMPARABLE = 0.5


def find_lost_time_and_steps(recording: Recording) -> list[Finding]:
    """Services that lose time or steps, strongest first inside each detector.

    `span_time` compares milliseconds (on the way and in the operations), `lost_steps` counts of child spans
    and log lines against what they belong to, `span_status` failed spans, `new_failures` lines of failure that
    the reference does not know.
    """
    seen, written = summarize_spans(recording), logdiff.read_log_statements(recording)
    lost = missing_spans.find_missing_child_spans(seen) + logdiff.find_lost_log_steps(written, seen)
    found = [
        *network_gaps.find_network_time_loss(seen),
        *slow_operations.find_slow_operations(seen),
        *failed_spans.find_failing_spans(seen),
    ]
    found += demote_explained_losses(lost, measure_call_shares(seen)) + logdiff.find_new_failure_lines(
        written, recording.topology
    )
    return sorted(found, key=lambda f: (f.detector, -f.size, f.service, f.kind, f.text))


def measure_call_shares(seen: SpanStatistics) -> dict[tuple[str, str], float]:
    """Calls per trace of each pair of services now, as a share of the usual."""
    traces = {stat.window: stat.traces_in_window or 1 for stat in seen.stats}
    rates: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    for edge in seen.edges:
        rates[edge.caller, edge.callee][edge.window] = edge.count / traces.get(edge.window, 1)
    shares = {}
    for pair, rate in rates.items():
        usual = _mean_call_rate(rate, seen.windows.reference)
        if usual > 0:
            shares[pair] = _mean_call_rate(rate, seen.windows.incident) / usual
    return shares


def _mean_call_rate(rates: dict[str, float], names: Sequence[str]) -> float:
    return sum(rates.get(name, 0.0) for name in names) / len(names) if names else 0.0


def demote_explained_losses(lost: Sequence[Finding], asked: dict[tuple[str, str], float]) -> list[Finding]:
    """Losses that another service's loss explains become a victim's.

    A callee that is asked far less often, by a caller whose own work breaks off, only answers what still comes.
    A caller that asks as usual breaks off because its callee did.
    """
    sizes: dict[str, float] = defaultdict(float)
    for finding in lost:
        sizes[finding.service] = max(sizes[finding.service], finding.size)
    victims = set()
    for (caller, callee), share in asked.items():
        if caller in sizes and callee in sizes:
            cause, victim = (caller, callee) if share < ASKED else (callee, caller)
            if sizes[cause] >= COMPARABLE * sizes[victim]:
                victims.add(victim)
    return [replace(f, direction="victim") if f.service in victims else f for f in lost]
