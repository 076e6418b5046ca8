"""An alert on a processor that fills up: named as the cause whatever the exporter calls it, never healthy, and no change after it to blame."""

import random
from typing import NamedTuple

import pytest

from opsleuth.analysis.ranking import rank_findings, run_detectors
from opsleuth.analysis.records import (
    AlertFacts,
    MetricSeries,
    Ranking,
    Recording,
    ServiceChange,
    TimeRange,
)

STEP = 300.0
SAMPLES, TURN = 60, 44
TIMES = [STEP * place for place in range(SAMPLES)]


class CpuName(NamedTuple):
    """How an exporter calls the use of a processor, and what it writes for a whole one."""

    metric: str
    unit: str
    whole: float


NAMES = (
    CpuName("cpu_usage", "percent", 100.0),
    CpuName("CPUUtilization", "Percent", 100.0),
    CpuName("cpu_usage_ratio", "", 1.0),
    CpuName("system.cpu.utilization", "1", 1.0),
    CpuName("node_cpu_usage_percent", "", 100.0),
    CpuName("process_cpu_utilization", "ratio", 1.0),
)


def record(name: CpuName, seed: int, late: float | None, changes: list[ServiceChange]) -> Recording:
    """A processor at a third of its capacity that is full from `TURN` on; `late` seconds after that the alert is sent."""
    rng = random.Random(f"{name.metric} {seed}")
    usual = rng.uniform(0.2, 0.4)
    full = [rng.uniform(0.97, 0.999) for _ in range(SAMPLES)]
    calm = [usual * (1 + rng.gauss(0, 0.04)) for _ in range(SAMPLES)]
    values = [name.whole * (full[i] if i >= TURN else calm[i]) for i in range(SAMPLES)]
    sent = TIMES[-1] if late is None else TIMES[TURN] + late
    alert = AlertFacts(f"{name.metric} of box-7 is unusual", "box-7", name.metric, fired=sent)
    series = MetricSeries("box-7", name.metric, name.unit, TIMES, values)
    return Recording(alert, TimeRange(0.0, TIMES[-1]), metrics=[series], changes=changes or None)


def rank(recording: Recording) -> Ranking:
    return rank_findings(recording, run_detectors(recording))


@pytest.mark.parametrize("name", NAMES, ids=lambda name: name.metric)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("late", [None, 600.0, 1800.0])
def test_a_processor_that_fills_up_is_the_cause(name: CpuName, seed: int, late: float | None) -> None:
    ranking = rank(record(name, seed, late, []))
    assert (ranking.verdict, ranking.suspects[0].service) == ("cause_found", "box-7")
    assert ranking.suspects[0].kind == "cpu"
    onset = ranking.suspects[0].onset
    assert onset is not None
    assert abs(onset - TIMES[TURN]) <= STEP


@pytest.mark.parametrize("name", NAMES[:3], ids=lambda name: name.metric)
@pytest.mark.parametrize("after", [1.5 * STEP, 3 * STEP, 8 * STEP])
@pytest.mark.parametrize("kind", ["deploy", "config", "flag"])
def test_what_was_changed_after_it_filled_up_is_not_blamed(name: CpuName, after: float, kind: str) -> None:
    late = ServiceChange(TIMES[TURN] + after, "box-7", kind, "box-7 8.2: cheaper loops", "8.2")
    ranking = rank(record(name, 1, None, [late]))
    assert ranking.changes == []
    assert ranking.suspects[0].kind == "cpu"
    assert not any("before the onset" in f.text for s in ranking.suspects for f in s.findings)
