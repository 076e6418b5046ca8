"""Whether what the alert complains about is as usual after all: a twitchy monitor, or an alert gone stale."""

from opsleuth.analysis.moves import ENOUGH, Rule, moved
from opsleuth.analysis.plain import number, readable
from opsleuth.analysis.records import Finding, Recording, Series
from opsleuth.analysis.roles import role_of

# Two spreads, less than a detector asks for: calm is only said of what does not even lean towards trouble.
LEANING = 2.0
_EITHER_SIDE = tuple(Rule("other", side, 1e-9, 0.05, noticeable=LEANING) for side in (+1, -1))


def find(recording: Recording) -> list[Finding]:
    """A `healthy` finding for each series of the alert's own metric that did not move; needs samples to judge by."""
    alert = recording.alert
    if alert.metric is None or alert.service is None:
        return []
    reference = {(s.service, s.metric, s.instance): s for s in recording.metrics_baseline or ()}
    own = [s for s in recording.metrics or () if (s.service, s.metric) == (alert.service, alert.metric)]
    findings = [_calm(recording, s, reference.get((s.service, s.metric, s.instance))) for s in own]
    calm = [finding for finding in findings if finding is not None]
    return calm if len(calm) == len(own) else []


def _calm(recording: Recording, series: Series, at_rest: Series | None) -> Finding | None:
    role = role_of(series.metric, series.unit)
    scale = role.scale if role else 1.0
    rest = at_rest.values if at_rest else ()
    onset = recording.alert.onset
    if len(series.values) < ENOUGH or any(moved(series, scale, rule, onset, rest) for rule in _EITHER_SIDE):
        return None
    (low, high), unit = readable((min(series.values), max(series.values)), series.unit)
    return Finding(
        detector="calm",
        signal="metrics",
        service=series.service,
        kind="other",
        size=1.0,
        text=(
            f"{series.metric} of {series.service} kept between {number(low)} and {number(high)} {unit}, "
            f"which is as usual."
        ),
        figures={"low": low, "high": high, "unit": unit},
        direction="healthy",
        metric=series.metric,
    )
