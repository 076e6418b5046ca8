"""Why rivals lost, in words of the report, whatever their figures."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opsleuth.console.report_reasons import explain_ruled_out, list_missing_grounds, list_shown_grounds
from opsleuth.console.time_formats import TimeDisplay
from opsleuth.state.conclusion_words import FAILED_FROM_FIRST_LINE

WEIGHTS = st.floats(0, 1).map("{:.2f}".format)


@given(WEIGHTS, WEIGHTS, st.sampled_from(["", "."]))
def test_a_weaker_rival_is_told_without_its_weight(weaker: str, stronger: str, end: str) -> None:
    claim = {
        "id": "C1",
        "text": f"What was found about web weighs {weaker}, about orders-db {stronger}{end}",
        "evidence": ["E1"],
    }
    told = explain_ruled_out({"hypothesis": "web: added latency", "claims": ["C1"]}, {"C1": claim})
    assert told.endswith("stronger) [E1]")
    assert told.startswith("web: added latency (the evidence for orders-db is ")


@pytest.mark.parametrize(("weaker", "word"), [("0.10", "far stronger"), ("0.90", "is stronger")])
def test_a_weaker_rival_is_told_how_far_it_is_behind(weaker: str, word: str) -> None:
    claim = {"text": f"What was found about web weighs {weaker}, about orders-db 0.95."}
    assert word in explain_ruled_out({"hypothesis": "web", "claims": ["C1"]}, {"C1": claim})


@pytest.mark.parametrize("service", ["web", "orders-db"])
@pytest.mark.parametrize("joined", [False, True])
@pytest.mark.parametrize("throughout", [False, True])
@pytest.mark.parametrize("followed", [False, True])
def test_a_ground_counts_as_shown_only_where_the_report_holds_it(
    service: str, *, joined: bool, throughout: bool, followed: bool
) -> None:
    text = f"{service} {FAILED_FROM_FIRST_LINE}: 9 of its 10 lines" if throughout else f"{service} fails"
    cause: dict[str, Any] = {"service": service, "claims": ["C1"], "shown": ["order", "path", "mechanism"], "confidence": "likely"}  # fmt: skip
    document = {
        "claims": [{"id": "C1", "text": text}],
        "propagation": [["gateway", service if joined else "cart"]],
    }
    if followed:
        cause["sequence"] = {"began": "2026-11-29T10:20:03Z", "later": "gateway", "later_began": "2026-11-29T10:21:00Z"}  # fmt: skip
    shown = list_shown_grounds(document, cause, TimeDisplay())
    missing = list_missing_grounds(document, cause)
    assert ("a path from it to what fails" in shown) is joined
    assert "a path from it to what fails" not in missing
    first = "that it began first (10:20:03Z, gateway at 10:21:00Z)"
    assert (first in shown) is (followed and not throughout)
    assert any("began first" in words for words in shown) is (first in shown)
    assert ("that it began first" in missing) is throughout
    assert "how it does the harm" in shown
