"""Shops that nobody tuned anything on: random call graphs, loads, faults, names, lost samples."""

from dataclasses import replace

import pytest
from made_up_shop import incident

from opsleuth.analysis.ranking import rank_findings, run_detectors
from opsleuth.analysis.records import Recording

SEEDS = range(40)


def first_is_right(recording: Recording, faulty: str, fault: str) -> bool:
    suspects = rank_findings(recording, run_detectors(recording)).suspects
    return bool(suspects) and (suspects[0].service, suspects[0].kind) == (faulty, fault)


@pytest.mark.parametrize("fault", ["latency", "errors"])
def test_the_faulty_service_comes_first(fault: str) -> None:
    right = [first_is_right(*incident(seed, fault), fault) for seed in SEEDS]
    assert sum(right) >= 0.95 * len(SEEDS)


@pytest.mark.parametrize("fault", ["latency", "errors"])
def test_loads_stand_in_for_a_call_graph_that_nobody_recorded(fault: str) -> None:
    right = []
    for seed in SEEDS:
        recording, faulty = incident(seed, fault)
        right.append(first_is_right(replace(recording, topology=None), faulty, fault))
    assert sum(right) >= 0.85 * len(SEEDS)


def test_a_shop_without_a_fault_is_not_blamed() -> None:
    verdicts = []
    for seed in SEEDS:
        recording, _ = incident(seed, None)
        verdicts.append(rank_findings(recording, run_detectors(recording)).verdict)
    assert verdicts.count("cause_found") <= 0.05 * len(SEEDS)
