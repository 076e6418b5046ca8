"""What the alert is about is looked at whatever its name, and never called healthy after it moved."""

import random

import pytest

from opsleuth.analysis.alert_measures import find_alert_measures
from opsleuth.analysis.ranking import rank_findings, run_detectors
from opsleuth.analysis.records import AlertFacts, MetricSeries, Ranking, Recording, TimeRange

TIMES = [60.0 * place for place in range(60)]
FAMILIES = (
    ("dynamodb_write_throttle_ratio", "ratio"),
    ("jvm_threads_deadlocked", ""),
    ("kafka_consumergroup_lag", ""),
    ("nginx_connections_waiting", ""),
    ("fizz_backpressure_score", ""),
    ("SurgeQueueLength", "Count"),
    ("vendor.custom.thing", "widgets"),
    ("envelopes_flushed_per_min", ""),
    ("cpu_usage", "percent"),
    ("http_401_unauthorized_ratio", ""),
)


def rank(metric: str, unit: str, values: list[float], *, onset: float | None = None) -> Ranking:
    alert = AlertFacts(f"{metric} of shop is unusual", "shop", metric, onset=onset, fired=TIMES[52])
    series = MetricSeries("shop", metric, unit, TIMES, values)
    recording = Recording(alert, TimeRange(0.0, 3600.0), metrics=[series])
    return rank_findings(recording, run_detectors(recording))


@pytest.mark.parametrize(("metric", "unit"), FAMILIES)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("told", [True, False])
def test_a_measure_of_any_family_that_moved_is_found(metric: str, unit: str, seed: int, told: bool) -> None:
    rng = random.Random(f"{metric} {seed}")
    usual, begin = rng.choice((0.02, 3.0, 33.0)), rng.randint(38, 48)
    values = [usual * (1 + rng.gauss(0, 0.03)) * (3.0 if i >= begin else 1.0) for i in range(60)]
    ranking = rank(metric, unit, values, onset=TIMES[begin] if told else None)
    assert (ranking.verdict, ranking.suspects[0].service) == ("cause_found", "shop")


@pytest.mark.parametrize(("metric", "unit"), FAMILIES)
def test_a_measure_of_any_family_that_stayed_is_healthy(metric: str, unit: str) -> None:
    rng = random.Random(metric)
    stayed = [rank(metric, unit, [33.0 * (1 + rng.gauss(0, 0.03)) for _ in range(60)]) for _ in range(10)]
    assert sum(ranking.verdict == "healthy" for ranking in stayed) >= 8
    assert not any(ranking.suspects for ranking in stayed)


def test_nothing_is_healthy_that_nobody_recorded() -> None:
    alert = AlertFacts("fizz of shop is unusual", "shop", "fizz", fired=3000.0)
    other = MetricSeries("shop", "buzz", "", TIMES, [1.0] * 60)
    recording = Recording(alert, TimeRange(0.0, 3600.0), metrics=[other])
    assert rank_findings(recording, run_detectors(recording)).verdict == "inconclusive"


def test_without_a_metric_the_words_of_the_alert_choose() -> None:
    series = [
        MetricSeries("shop", name, unit, TIMES, [1.0] * 60)
        for name, unit in (("latency_p99", "ms"), ("cpu_usage", "%"), ("error_ratio", ""), ("open_fds", ""))
    ]
    recording = Recording(AlertFacts("shop is slow", "shop"), TimeRange(0.0, 3600.0), metrics=series)
    assert [s.metric for s in find_alert_measures(recording)] == ["latency_p99"]


def test_what_else_moved_on_the_suspect_stands_beside_it() -> None:
    alert = AlertFacts("errors of shop", "shop", "errors_total", onset=TIMES[40], fired=TIMES[45])
    moved = [
        MetricSeries("shop", "errors_total", "count", TIMES, [1.0] * 40 + [90.0] * 20),
        MetricSeries("shop", "worker_pool_size", "", TIMES, [50.0] * 40 + [5.0] * 20),
        MetricSeries("shop", "uptime_days", "", TIMES, [7.0] * 60),
    ]
    recording = Recording(alert, TimeRange(0.0, 3600.0), metrics=moved)
    ranking = rank_findings(recording, run_detectors(recording))
    assert [f.metric for f in ranking.also_moved] == ["worker_pool_size"]


@pytest.mark.parametrize(
    ("metric", "text"),
    [
        ("kafka_consumergroup_lag", "KafkaConsumerLag: consumer group invoicer lag above 10000"),
        ("jobs.waiting.total", "JobsWaiting on shop"),
        ("coolant_loop_pressure_kpa", "coolant loop pressure kPa too low"),
    ],
)
def test_every_word_of_the_name_in_the_text_chooses_too(metric: str, text: str) -> None:
    series = [MetricSeries("shop", name, "", TIMES, [1.0] * 60) for name in (metric, "other_thing_seen")]
    recording = Recording(AlertFacts(text, "shop", fired=TIMES[52]), TimeRange(0.0, 3600.0), metrics=series)
    assert [found.metric for found in find_alert_measures(recording)] == [metric]


def test_the_metric_alone_chooses_where_its_hosts_are_named_otherwise() -> None:
    series = [MetricSeries(host, "lag", "", TIMES, [1.0] * 60) for host in ("shop-1", "shop-2")]
    alert = AlertFacts("lag of shop", "shop", "lag", fired=TIMES[52])
    assert len(find_alert_measures(Recording(alert, TimeRange(0.0, 3600.0), metrics=series))) == 2


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("slope", [5.0, 100.0])
@pytest.mark.parametrize("side", [1, -1])
def test_what_climbs_begins_at_the_foot_of_the_climb(seed: int, slope: float, side: int) -> None:
    chance = random.Random(seed)
    values = [side * (chance.gauss(10.0, 1.0) + slope * max(0, place - 30)) for place in range(60)]
    [cause] = rank("vendor.custom.thing", "widgets", values).suspects
    assert cause.onset is not None
    assert 30 <= cause.onset / 60.0 <= 33
