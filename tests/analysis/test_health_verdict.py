"""What the alert complains about, and whether it is as usual."""

import pytest

from opsleuth.analysis.health_verdict import find_unchanged_alert_metrics
from opsleuth.analysis.ranking import rank_findings, run_detectors
from opsleuth.analysis.records import AlertFacts, MetricSeries, ObjectState, Recording, TimeRange

TIMES = [60.0 * place for place in range(12)]
REST = [100.0, 104.0, 97.0, 101.0, 99.0, 103.0, 98.0, 100.0]


def alerting(
    values: list[float], metric: str | None = "latency", baseline: list[float] | None = None
) -> Recording:
    at_rest = (
        None if baseline is None else [MetricSeries("web", "latency", "ms", TIMES[: len(baseline)], baseline)]
    )
    return Recording(
        AlertFacts("web is slow", service="web", metric=metric, onset=8 * 60.0),
        TimeRange(0.0, 720.0),
        metrics=[MetricSeries("web", "latency", "ms", TIMES[: len(values)], values)],
        metrics_baseline=at_rest,
    )


def test_a_metric_that_kept_its_level_is_healthy_and_says_its_range() -> None:
    (finding,) = find_unchanged_alert_metrics(alerting([*REST, 102.0, 99.0, 101.0, 100.0]))
    assert (finding.direction, finding.service, finding.metric) == ("healthy", "web", "latency")
    assert (finding.figures["low"], finding.figures["high"]) == (99.0, 102.0)
    assert (finding.figures["usual_low"], finding.figures["usual_high"]) == (97.0, 104.0)


@pytest.mark.parametrize("incident", [[300.0] * 4, [20.0] * 4, [100.0, 100.0, 250.0, 260.0]])
def test_a_metric_that_moved_either_way_is_not(incident: list[float]) -> None:
    assert find_unchanged_alert_metrics(alerting([*REST, *incident])) == []


def test_a_level_between_its_references_is_calm() -> None:
    busy = [150.0, 155.0, 148.0, 151.0]
    assert find_unchanged_alert_metrics(alerting([*REST, 130.0, 128.0, 131.0, 129.0], baseline=busy)) != []


@pytest.mark.parametrize("values", [[], [100.0], [100.0, 100.0, 100.0]])
def test_too_few_samples_prove_no_calm(values: list[float]) -> None:
    assert find_unchanged_alert_metrics(alerting(values)) == []


def test_without_a_metric_the_measures_that_fit_the_words_are_judged() -> None:
    (finding,) = find_unchanged_alert_metrics(alerting([*REST, 100.0, 100.0], metric=None))
    assert finding.metric == "latency"


def test_a_metric_that_nobody_recorded_cannot_be_judged() -> None:
    assert find_unchanged_alert_metrics(alerting([*REST, 100.0, 100.0], metric="errors")) == []


READY = {"spec": {"replicas": 2}, "status": {"replicas": 2, "readyReplicas": 2, "availableReplicas": 2}}


def judge_with_ready_pods(text: str, service: str | None = "shop") -> str:
    objects = [ObjectState(10.0, "Deployment", name, READY["status"], "prod", READY["spec"]) for name in ("shop", "cart")]  # fmt: skip
    recording = Recording(AlertFacts(text, service), TimeRange(0.0, 600.0), objects=objects)
    return rank_findings(recording, run_detectors(recording)).verdict


@pytest.mark.parametrize("text", [
    "nobody can log in to shop", "uploads to shop are rejected with 403", "shop shows an empty page", "orders of shop get lost",
    "shop is down", "shop answers with the wrong price", "Why does shop refuse cards?", "is shop all right?",
])  # fmt: skip
def test_ready_replicas_are_no_health_of_a_symptom_that_nothing_measured(text: str) -> None:
    assert judge_with_ready_pods(text) == "inconclusive"


@pytest.mark.parametrize("text", ["KubernetesPodNotReady for shop", "pods of shop restart", "the rollout of shop is stuck", "scheduled health check of shop"])  # fmt: skip
def test_an_alert_about_the_state_of_objects_is_answered_by_their_state(text: str) -> None:
    assert judge_with_ready_pods(text) == "healthy"
