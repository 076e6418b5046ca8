"""A run with three effects, killed at every write of the store and at 60 random moments: the counts must be zero."""

import chaos


def test_nothing_is_executed_twice_nothing_is_lost_no_state_is_illegal() -> None:
    said: list[str] = []
    counts = chaos.run_all(seed=7, moments=60, writes=None, jobs=4, say=said.append)
    assert said == []
    assert counts["writes"] > 40
    assert counts["killed"] > counts["writes"] // 2
    assert counts["executed more than once"] == 0
    assert counts["lost without a word"] == 0
    assert counts["illegal states"] == 0
