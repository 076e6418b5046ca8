"""A figure may be rounded and written in another unit, as people do; a nearby one that is wrong is refused."""

from datetime import UTC, datetime

import pytest

from opsleuth.state.calls import ResultStatus
from opsleuth.state.conclusion import Claim
from opsleuth.state.investigation import Window
from opsleuth.verification.claim_resolution import resolve_claim
from opsleuth.verification.conclusion_basis import ConclusionBasis, EvidenceView

WINDOW = Window(
    start=datetime(2026, 11, 29, 13, 40, tzinfo=UTC), end=datetime(2026, 11, 29, 14, 20, tzinfo=UTC)
)
WRITTEN = [
    ("%", 12.34, "about 12 %", True),
    ("%", 12.34, "12.3 %", True),
    ("%", 12.34, "roughly 12 percent", True),
    ("%", 12.34, "12.6 %", False),
    ("%", 12.34, "about 14 %", False),
    ("requests", 1512, "1.5k", True),
    ("requests", 1512, "about 1,500", True),
    ("requests", 1512, "1.6k", False),
    ("requests", 1512, "1.4k requests", False),
    ("requests", 3_214_567, "3.2 million", True),
    ("requests", 3_214_567, "3.2M requests", True),
    ("requests", 3_214_567, "3.4 million", False),
    ("MiB", 2048, "2 GB", True),
    ("MiB", 2048, "2 GiB", True),
    ("MiB", 2048, "2.1 GB", True),
    ("MiB", 2048, "3 GB", False),
    ("MiB", 2048, "1.7 GB", False),
]


@pytest.mark.parametrize(("unit", "value", "written", "holds"), WRITTEN)
def test_a_rounded_figure_holds_and_a_nearby_one_does_not(
    unit: str, value: float, written: str, holds: bool
) -> None:
    series = {
        "service": "cart", "metric": "level", "unit": unit, "samples": 30,
        "max": {"time": "2026-11-29T14:00:00Z", "value": value}, "baseline": {"median": value / 4},
    }  # fmt: skip
    seen = EvidenceView("E1", "metrics_query", "metrics", ResultStatus.OK, series)
    claim = Claim(id="C1", text=f"level of cart rose to {written}", evidence=("E1",))
    _, problems = resolve_claim(claim, ConclusionBasis({"E1": seen}, WINDOW, ("cart",)))
    assert (not problems) is holds
