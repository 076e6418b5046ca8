"""Workers killed, PostgreSQL restarted, connections cut: every run ends, nothing is done twice, nothing is lost."""

import pytest
import service_chaos

pytestmark = pytest.mark.chaos


def test_every_run_ends_and_nothing_is_done_twice() -> None:
    result = service_chaos.experiment(runs=12, seed=3, every=2.0)
    assert sum(result["ended"].values()) == 12
    assert result["workers killed"] > 0
    assert result["changes made"] > 0
    assert result["changes made twice"] == 0
    assert result["happened and not known to have"] == []
    assert result["ended without a report"] == []
    assert result["broken traces"] == []
