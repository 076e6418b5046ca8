"""Shops that nobody tuned anything on: random call graphs, loads, faults, names, lost samples."""

import pytest
from made_up_shop import incident

from opsleuth.analysis.ranking import detect, rank

SEEDS = range(40)


@pytest.mark.parametrize("fault", ["latency", "errors"])
def test_the_faulty_service_comes_first(fault: str) -> None:
    right = 0
    for seed in SEEDS:
        recording, faulty = incident(seed, fault)
        suspects = rank(recording, detect(recording)).suspects
        right += bool(suspects) and (suspects[0].service, suspects[0].kind) == (faulty, fault)
    assert right >= 0.95 * len(SEEDS)


def test_a_shop_without_a_fault_is_not_blamed() -> None:
    verdicts = []
    for seed in SEEDS:
        recording, _ = incident(seed, None)
        verdicts.append(rank(recording, detect(recording)).verdict)
    assert verdicts.count("cause_found") <= 0.05 * len(SEEDS)
