"""A run with its effects, killed at every write of the store and at random moments of every dimension: the counts must be zero."""

import chaos
import pytest
from chaos_dimensions import DIMENSIONS

# CI counts by `make chaos`.
pytestmark = [pytest.mark.chaos, pytest.mark.exhaustive, pytest.mark.timeout(900)]


def test_nothing_is_executed_twice_nothing_is_lost_no_state_is_illegal() -> None:
    said: list[str] = []
    counts = chaos.run_all(seed=7, moments=6 * len(DIMENSIONS), writes=40, jobs=2, say=said.append)
    assert said == []
    assert len(counts) == len(DIMENSIONS) + 1
    assert counts["kill at each write"]["trials"] >= 40
    assert counts["kill at each write"]["killed"] > counts["kill at each write"]["trials"] // 2
    for name, row in counts.items():
        assert row["trials"] > 5, name
        assert not any(row[wrong] for wrong in chaos.WRONG), (name, row)
