"""The whole picture on a small made-up shop: verdict, causes, propagation, notes; and what must not matter."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from opsleuth.analysis.ranking import DETECTORS, rank_findings, run_detectors
from opsleuth.analysis.records import (
    AlertFacts,
    Finding,
    MetricSeries,
    Ranking,
    Recording,
    ServiceDependency,
    TimeRange,
)

STEP = 60.0
TIMES = [STEP * place for place in range(20)]
ONSET = 14 * STEP
CALLS = [ServiceDependency("web", "api"), ServiceDependency("api", "db"), ServiceDependency("web", "cache")]


def level(usual: float, incident: float | None = None) -> list[float]:
    rest = [usual * (1 + 0.01 * (place % 3 - 1)) for place in range(14)]
    return rest + ([usual] * 6 if incident is None else [incident] * 6)


def shop(
    latency: Mapping[str, Sequence[float]], cpu: Mapping[str, Sequence[float]], metric: str = "latency"
) -> Recording:
    metrics = [MetricSeries(name, "latency", "ms", TIMES, values) for name, values in latency.items()]
    metrics += [MetricSeries(name, "requests", "count", TIMES, [200.0] * 20) for name in latency]
    metrics += [MetricSeries(name, "cpu_usage", "%", TIMES, values) for name, values in cpu.items()]
    alert = AlertFacts("web is slow", service="web", metric=metric, onset=ONSET, fired=ONSET + STEP)
    return Recording(alert, TimeRange(0.0, 20 * STEP), metrics=metrics, topology=CALLS)


FULL_DB = shop(
    {"web": level(90, 390), "api": level(60, 360), "db": level(30, 330), "cache": level(1)},
    {"web": level(20), "api": level(30), "db": level(25, 99), "cache": level(5)},
)
QUIET = shop({"web": level(90), "api": level(60), "db": level(30)}, {"db": level(25)})


def look(recording: Recording) -> Ranking:
    return rank_findings(recording, run_detectors(recording))


def test_the_busy_database_is_the_cause_and_the_callers_are_its_victims() -> None:
    ranking = look(FULL_DB)
    first = ranking.suspects[0]
    assert (ranking.verdict, ranking.causes) == ("cause_found", 1)
    assert (first.service, first.kind, first.metric, first.onset) == ("db", "cpu", "cpu_usage", ONSET)
    assert ranking.propagation == [("db", "api"), ("api", "web")]


def test_the_notes_name_the_cause_with_its_figures_and_what_could_not_be_looked_at() -> None:
    notes = look(FULL_DB).notes
    assert notes[0].startswith("db (cpu): cpu_usage of db went from 25")
    assert notes[-1] == "Not available: logs, traces, changes, events, objects, statements."


def test_two_independent_faults_are_two_causes() -> None:
    both = shop(
        {"web": level(90, 400), "api": level(60, 210), "db": level(30), "cache": level(1, 150)},
        {"api": level(20, 97), "cache": level(20, 98)},
    )
    ranking = look(both)
    assert ranking.causes == 2
    assert {suspect.service for suspect in ranking.suspects[:2]} == {"api", "cache"}


def test_a_calm_alert_is_healthy_and_nobody_is_blamed() -> None:
    ranking = look(QUIET)
    assert (ranking.verdict, ranking.causes, ranking.suspects) == ("healthy", 0, [])


def test_no_data_is_inconclusive_not_healthy() -> None:
    ranking = look(Recording(AlertFacts("web is slow", service="web"), TimeRange(0.0, 600.0)))
    assert (ranking.verdict, ranking.causes, ranking.propagation) == ("inconclusive", 0, [])
    assert "Not available: metrics" in ranking.notes[-1]


@pytest.mark.parametrize("find", DETECTORS)
def test_every_detector_bears_a_recording_of_empty_tables(find: object) -> None:
    empty: dict[str, list[object]] = {
        name: [] for name in Recording.__dataclass_fields__ if name not in ("alert", "window")
    }
    recording = Recording(AlertFacts(""), TimeRange(0.0, 0.0), **empty)  # type: ignore[arg-type]
    assert callable(find)
    assert find(recording) == []


def shifted(recording: Recording, by: float) -> Recording:
    alert = recording.alert
    return replace(
        recording,
        alert=replace(alert, onset=(alert.onset or 0.0) + by, fired=(alert.fired or 0.0) + by),
        window=TimeRange(recording.window.start + by, recording.window.end + by),
        metrics=[replace(s, times=[time + by for time in s.times]) for s in recording.metrics or ()],
    )


def renamed(recording: Recording, names: Mapping[str, str]) -> Recording:
    return replace(
        recording,
        alert=replace(recording.alert, service=names[recording.alert.service or ""]),
        metrics=[replace(s, service=names[s.service]) for s in recording.metrics or ()],
        topology=[ServiceDependency(names[e.caller], names[e.callee]) for e in recording.topology or ()],
    )


def gist(ranking: Ranking) -> list[tuple[str, str, float]]:
    return [(suspect.service, suspect.kind, round(suspect.score, 9)) for suspect in ranking.suspects]


@pytest.mark.parametrize("by", [-1.5e9, 86400.0 * 365])
def test_the_date_does_not_matter(by: float) -> None:
    moved = look(shifted(FULL_DB, by))
    assert gist(moved) == gist(look(FULL_DB))
    assert moved.suspects[0].onset == ONSET + by


@pytest.mark.parametrize("seed", range(5))
def test_the_order_of_rows_does_not_matter(seed: int) -> None:
    source = random.Random(seed)
    metrics, topology = list(FULL_DB.metrics or ()), list(CALLS)
    source.shuffle(metrics)
    source.shuffle(topology)
    assert gist(look(replace(FULL_DB, metrics=metrics, topology=topology))) == gist(look(FULL_DB))


@pytest.mark.parametrize("seed", range(5))
def test_names_do_not_matter(seed: int) -> None:
    source = random.Random(seed)
    names = {name: f"{source.getrandbits(40):010x}" for name in ("web", "api", "db", "cache")}
    expected = [(names[service], kind, score) for service, kind, score in gist(look(FULL_DB))]
    assert gist(look(renamed(FULL_DB, names))) == expected


def test_a_victim_alone_accuses_nobody() -> None:
    victim = Finding("d", "metrics", "api", "latency", 50.0, "api is slow", {}, direction="victim")
    ranking = rank_findings(QUIET, [victim])
    assert (ranking.verdict, ranking.suspects) == ("inconclusive", [])
