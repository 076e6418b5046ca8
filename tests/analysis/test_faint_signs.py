"""Small moves that nothing else agrees with are told, and accuse nobody; moves that matter still do."""

import random

import pytest

from opsleuth.analysis.ranking import rank_findings, run_detectors
from opsleuth.analysis.records import AlertFacts, LogLine, MetricSeries, Ranking, Recording, TimeRange

TIMES = [60.0 * place for place in range(60)]
ONSET = 45
LATENCIES = (
    ("latency_p95", "ms", 80.0),
    ("LatencyP95", "Seconds", 0.6),
    ("http_server_duration_seconds_p95", "s", 0.07),
)


def waver(rng: random.Random, level: float, noise: float = 0.03) -> list[float]:
    """Usual samples, none of them further from the level than two spreads."""
    return [level * (1 + max(-2 * noise, min(2 * noise, rng.gauss(0, noise)))) for _ in TIMES]


def rank(series: list[MetricSeries], *, metric: str, logs: list[LogLine] | None = None) -> Ranking:
    alert = AlertFacts(
        "Latency of shop above its usual range.", "shop", metric, onset=TIMES[ONSET], fired=TIMES[ONSET + 2]
    )
    recording = Recording(alert, TimeRange(0.0, 3600.0), metrics=series, logs=logs)
    return rank_findings(recording, run_detectors(recording))


def make_excursion(
    seed: str, metric: str, unit: str, level: float, *, rise: float, long: int
) -> MetricSeries:
    """Usual samples with `long` higher ones after the onset, over four samples before the end if there is room."""
    rng = random.Random(seed)
    values = waver(rng, level)
    first = rng.randint(ONSET + 1, max(ONSET + 1, len(TIMES) - 4 - long))
    values[first : first + long] = [level * (rise + rng.uniform(0, 0.02)) for _ in range(long)]
    return MetricSeries("shop", metric, unit, TIMES, values)


@pytest.mark.parametrize(("metric", "unit", "level"), LATENCIES)
@pytest.mark.parametrize("rise", [1.32, 1.38, 1.44])
@pytest.mark.parametrize("long", [2, 3])
def test_a_short_small_rise_alone_accuses_nobody(
    metric: str, unit: str, level: float, rise: float, long: int
) -> None:
    series = make_excursion(f"{metric} {rise} {long}", metric, unit, level, rise=rise, long=long)
    ranking = rank([series], metric=metric, logs=[])
    assert (ranking.verdict, list(ranking.suspects)) == ("inconclusive", [])
    assert any(f"{metric} of shop rose to" in note for note in ranking.notes)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("mostly", [1.08, 1.11, 1.14])
def test_one_high_sample_in_a_slightly_raised_stretch_accuses_nobody(seed: int, mostly: float) -> None:
    rng = random.Random(seed)
    values = waver(rng, 0.1)
    values[ONSET + 3 :] = [0.1 * mostly * (1 + rng.uniform(-0.005, 0.005)) for _ in values[ONSET + 3 :]]
    values[rng.randint(ONSET + 3, len(TIMES) - 1)] = 0.135
    series = MetricSeries("shop", "http_server_duration_seconds_p50", "s", TIMES, values)
    assert not rank([series], metric=series.metric, logs=[]).suspects


@pytest.mark.parametrize(("metric", "unit", "level"), LATENCIES)
@pytest.mark.parametrize(("rise", "long"), [(1.4, 12), (1.7, 4), (2.5, 3), (2.5, 13)])
def test_a_rise_that_lasts_or_is_large_accuses(
    metric: str, unit: str, level: float, rise: float, long: int
) -> None:
    series = make_excursion(f"{metric} {rise} {long}", metric, unit, level, rise=rise, long=long)
    ranking = rank([series], metric=metric, logs=[])
    assert (ranking.verdict, ranking.suspects[0].service) == ("cause_found", "shop")


@pytest.mark.parametrize(("metric", "unit", "level"), LATENCIES)
def test_the_silence_of_sources_that_were_not_read_says_nothing(metric: str, unit: str, level: float) -> None:
    series = make_excursion(metric, metric, unit, level, rise=1.4, long=3)
    assert rank([series], metric=metric).verdict == "cause_found"


@pytest.mark.parametrize("seed", range(4))
def test_a_second_measure_confirms_a_small_rise(seed: int) -> None:
    rise = make_excursion(f"{seed}", "latency_p95", "ms", 80.0, rise=1.4, long=3)
    busy = [20.0 + random.Random(seed).gauss(0, 0.3) for _ in TIMES[:ONSET]] + [92.0] * (60 - ONSET)
    ranking = rank([rise, MetricSeries("shop", "cpu", "%", TIMES, busy)], metric="latency_p95", logs=[])
    assert (ranking.verdict, ranking.suspects[0].service) == ("cause_found", "shop")


def rank_failures(seed: int, failed: float) -> Ranking:
    """A calm latency alert of `shop`, while a share of the many requests to `stock` fails."""
    rng = random.Random(seed)
    usual = [rng.uniform(0.0014, 0.0016) for _ in TIMES[:ONSET]]
    shares = usual + [failed + rng.uniform(-0.0001, 0.0001) for _ in TIMES[ONSET:]]
    rates = [100.0 + rng.gauss(0, 1) for _ in TIMES]
    series = [
        MetricSeries("shop", "latency_p95", "ms", TIMES, waver(rng, 80.0)),
        MetricSeries("stock", "requests", "req/s", TIMES, rates),
        MetricSeries("stock", "errors", "req/s", TIMES, [r * s for r, s in zip(rates, shares, strict=True)]),
    ]
    alert = AlertFacts(
        "Latency of shop above its usual range.", "shop", onset=TIMES[ONSET], fired=TIMES[ONSET + 2]
    )
    recording = Recording(alert, TimeRange(0.0, 3600.0), metrics=series, logs=[])
    return rank_findings(recording, run_detectors(recording))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("failed", [0.0027, 0.003, 0.004])
def test_a_few_more_failures_elsewhere_are_told_and_accuse_nobody(seed: int, failed: float) -> None:
    ranking = rank_failures(seed, failed)
    assert (ranking.verdict, list(ranking.suspects)) == ("inconclusive", [])
    assert any("requests to stock failed" in note and "too small" in note for note in ranking.notes)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("failed", [0.01, 0.05, 0.4])
def test_failures_that_matter_accuse_though_the_alert_is_calm(seed: int, failed: float) -> None:
    ranking = rank_failures(seed, failed)
    assert (ranking.verdict, ranking.suspects[0].service) == ("cause_found", "stock")


def rank_busy(seed: int, latency_rise: float) -> Ranking:
    """CPU of `shop` a few points up, far from its limit."""
    rng = random.Random(seed)
    cpu = [32.0 + rng.uniform(-1, 1) for _ in TIMES[:ONSET]]
    cpu += [39.0 + rng.uniform(-1, 1) for _ in TIMES[ONSET:]]
    slow = waver(rng, 80.0, noise=0.02)
    slow[ONSET:] = [value * latency_rise for value in slow[ONSET:]]
    series = [
        MetricSeries("shop", "latency_p95", "ms", TIMES, slow),
        MetricSeries("shop", "cpu", "%", TIMES, cpu),
    ]
    return rank(series, metric="latency_p95", logs=[])


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("latency_rise", [1.0, 1.02, 1.1])
def test_a_few_points_of_cpu_accuse_nobody_while_the_alert_measure_has_not_moved(
    seed: int, latency_rise: float
) -> None:
    ranking = rank_busy(seed, latency_rise)
    assert not ranking.suspects


@pytest.mark.parametrize("seed", range(6))
def test_a_few_points_of_cpu_accuse_where_the_alert_measure_moved(seed: int) -> None:
    ranking = rank_busy(seed, 1.8)
    assert (ranking.verdict, ranking.suspects[0].service) == ("cause_found", "shop")
