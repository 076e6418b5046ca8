"""A change that was made after the onset sets nothing off, however few seconds after it."""

import random

import pytest

from opsleuth.analysis.changes import find_onset_slack
from opsleuth.analysis.ranking import rank_findings, run_detectors
from opsleuth.analysis.records import AlertFacts, MetricSeries, Recording, ServiceChange, TimeRange

STEP, ONSET = 60.0, 34 * 60.0


def record_failures(seed: int, after: float, *, first: float = 1.0) -> Recording:
    """Failures from `ONSET` on, of which the first sample shows the share `first`; a deploy `after` seconds later."""
    rng = random.Random(seed)
    usual, incident = rng.uniform(0.001, 0.01), rng.uniform(0.15, 0.5)
    times = [STEP * n for n in range(60)]
    levels = [usual if t < ONSET else usual + first * (incident - usual) if t == ONSET else incident for t in times]  # fmt: skip
    values = [level * rng.uniform(0.95, 1.05) for level in levels]
    name = rng.choice(["http_error_ratio", "failed_share", "charge_failures_ratio"])
    change = ServiceChange(ONSET + after, "basket", rng.choice(["deploy", "config", "flag"]), "release 4.9.2", version="4.9.2")  # fmt: skip
    return Recording(
        AlertFacts("basket fails", "basket", name, fired=50 * 60.0),
        TimeRange(0.0, 3600.0),
        metrics=[MetricSeries("basket", name, "ratio", times, values), MetricSeries("web", name, "ratio", times, [0.002] * 60)],
        changes=[change],
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("after", [1.0, 15.0, 40.0, 59.0, 90.0, 600.0])
def test_a_change_after_a_sample_that_is_as_bad_as_the_rest_is_not_named(seed: int, after: float) -> None:
    recording = record_failures(seed, after)
    ranking = rank_findings(recording, run_detectors(recording))
    assert ranking.changes == []
    assert ranking.suspects[0].service == "basket"
    assert ranking.suspects[0].kind not in {"deploy", "config"}


@pytest.mark.parametrize("seed", range(4))
def test_a_change_inside_the_sample_in_which_it_began_may_have_set_it_off(seed: int) -> None:
    recording = record_failures(seed, 20.0, first=0.5)
    ranking = rank_findings(recording, run_detectors(recording))
    assert [g.change.version for g in ranking.changes] == ["4.9.2"]


def test_a_change_before_the_onset_is_still_named_and_without_metrics_a_step_is_allowed() -> None:
    recording = record_failures(1, -120.0)
    assert rank_findings(recording, run_detectors(recording)).changes
    assert find_onset_slack(Recording(AlertFacts("?", onset=ONSET), TimeRange(0.0, 3600.0))) == STEP
