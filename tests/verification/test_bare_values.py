"""A short sentence `NAME is NUMBER` is measured where the row names the thing and its value has no other name."""

from datetime import UTC, datetime
from typing import Any

import pytest

from opsleuth.state.calls import ResultStatus
from opsleuth.state.conclusion import Claim
from opsleuth.state.investigation import Window
from opsleuth.verification.claim_resolution import resolve_claim
from opsleuth.verification.conclusion_basis import ConclusionBasis, EvidenceView

WINDOW = Window(start=datetime(2026, 3, 4, 8, tzinfo=UTC), end=datetime(2026, 3, 4, 10, tzinfo=UTC))
ROWS: dict[str, dict[str, Any]] = {
    "E1": {"thing": "a", "value": 13277057},
    "E2": {"thing": "b", "value": 41.5, "limit": 977},
    "E3": {"sensor": "intake-lag", "reading": 318},
}


def resolve(text: str, *cited: str) -> Claim:
    views = {id_: EvidenceView(id_, "look", "x", ResultStatus.OK, row) for id_, row in ROWS.items()}
    basis = ConclusionBasis(views, WINDOW, ("a", "b", "intake-lag"))
    made, problems = resolve_claim(Claim(id="C1", text=text, evidence=cited), basis)
    return made if not problems else made.model_copy(update={"basis": "inferred"})


@pytest.mark.parametrize(
    ("text", "cited", "said"),
    [
        ("a is 13277057", ("E1",), "value: 13,277,057 (thing a)"),
        ("a is 13,277,057.", ("E1", "E2"), "value: 13,277,057 (thing a)"),
        ("The a was 13277057", ("E1",), "value: 13,277,057 (thing a)"),
        ("b: 41.5", ("E2",), "value: 41.5 (thing b, limit 977)"),
        ("b stands at 41.5", ("E1", "E2"), "value: 41.5 (thing b, limit 977)"),
        ("intake-lag is 318", ("E3",), "reading: 318 (sensor intake-lag)"),
    ],
)
def test_a_plain_true_statement_is_measured(text: str, cited: tuple[str, ...], said: str) -> None:
    made = resolve(text, *cited)
    assert (made.basis, made.text) == ("measured", said)


@pytest.mark.parametrize(
    ("text", "cited"),
    [
        ("a is 13277058", ("E1",)),
        ("a is 41.5", ("E1", "E2")),
        ("b is 13277057", ("E1", "E2")),
        ("b is 977", ("E2",)),
        ("shop is 13277057", ("E1",)),
        ("a failed 13277057 times", ("E1",)),
        ("a is 13277057 times slower", ("E1",)),
        ("a is not 13277057", ("E1",)),
        ("errors of a rose to 13277057", ("E1",)),
        ("intake-lag is 318 ms", ("E3",)),
    ],
)
def test_what_says_more_or_other_than_the_row_is_not_measured(text: str, cited: tuple[str, ...]) -> None:
    assert resolve(text, *cited).basis == "inferred"
