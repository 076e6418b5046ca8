"""A claim is shown in code's words only where these still state what the claim stated."""

from datetime import UTC, datetime
from typing import Any

import pytest

from opsleuth.state.calls import ResultStatus
from opsleuth.state.conclusion import Claim
from opsleuth.state.investigation import Window
from opsleuth.verification.claim_resolution import resolve_claim
from opsleuth.verification.conclusion_basis import ConclusionBasis, EvidenceView

WINDOW = Window(start=datetime(2026, 6, 9, 10, tzinfo=UTC), end=datetime(2026, 6, 9, 11, tzinfo=UTC))
STATUS = (
    "Name: till-5d8\nNamespace: shop\nContainers:\n  main:\n    Image: till:3\n    Requests:\n      cpu: 3\n"
    "      memory: 5Gi\n      example.com/gpu: 5\n    Started: Tue, 09 Jun 2026 10:28:38 +0000\n"
)
OBJECTS = {
    "objects": [
        {"kind": "Pod", "name": "till-5d8", "ready": 0, "desired": 1, "restarts": 2, "state": "Failed",
         "reasons": "Error", "captured_at": "2026-06-09T10:31:00Z", "status": STATUS},
        {"kind": "Job", "name": "till", "backoff_limit": 0},
    ],
}  # fmt: skip
LINES = {
    "failing": [{"service": "till", "pattern": "card reader is offline", "now": 24, "usual": 3, "just_before": 9}],
    "gone": [{"service": "till", "pattern": "receipt printed", "now": 0, "usual": 52, "just_before": 4}],
    "patterns": 2, "lines_now": 420, "lines_usual": 972,
}  # fmt: skip
STATEMENTS = {
    "statements": [
        {"database": "orders", "statement": "VACUUM FREEZE bills", "load": 7.8, "load_unit": "average active sessions",
         "calls": 24, "captured_at": "2026-06-09T10:20:00Z", "waits": {"IO:WALWrite": 2.4, "LWLock:BufferMapping": 3.9}},
    ],
    "scanned": 1, "matched": 1,
}  # fmt: skip
SEARCH = {
    "scanned": 90, "matched": 12, "first": "2026-06-09T10:05:00Z", "last": "2026-06-09T10:50:00Z", "not_shown": 11,
    "sampling": "a fixed sample of 4 a minute", "service": "till", "level": "error",
    "lines": [{"service": "till", "message": "no route to ledger", "time": "2026-06-09T10:05:00Z", "level": "error"}],
}  # fmt: skip


def resolve(text: str, tool: str, record: dict[str, Any]) -> Claim:
    view = EvidenceView(
        "E1", tool, tool, ResultStatus.OK, record, asked={"service": "till", "level": "error"}
    )
    basis = ConclusionBasis({"E1": view}, WINDOW, ("till", "orders"))
    made, problems = resolve_claim(Claim(id="C1", text=text, evidence=("E1",)), basis)
    assert problems == ()
    return made


@pytest.mark.parametrize(
    "text",
    [
        "The container of till-5d8 requests 5 example.com/gpu",
        "It requests 3 cpu and 5Gi of memory",
        "The Job has a backoff limit of 0",
    ],
)
def test_a_figure_that_the_row_does_not_say_leaves_the_claim_in_its_own_words(text: str) -> None:
    made = resolve(text, "objects_get", OBJECTS)
    assert (made.basis, made.text) == ("inferred", text)


@pytest.mark.parametrize(
    ("text", "tool", "record", "said"),
    [
        ("Pod till-5d8 has 2 restarts", "objects_get", OBJECTS,
         "Pod till-5d8 has 0 of 1 containers ready at 2026-06-09T10:31:00Z (Failed, reasons: Error, 2 restarts)"),
        ("till logged that the card reader is offline 24 times, usually 3 times", "logs_patterns", LINES,
         'log lines of till that match "card reader is offline" rose from 3 to 24'),
        ('"receipt printed" of till was written 0 times, usually 52 times', "logs_patterns", LINES,
         'log lines of till that match "receipt printed" fell from 52 to 0'),
        ("420 log lines were written, usually 972", "logs_patterns", LINES, "420 log lines of 2 patterns, usually 972"),
        ("VACUUM FREEZE bills waits 3.9 sessions for LWLock:BufferMapping", "database_statements", STATEMENTS,
         ('"VACUUM FREEZE bills" has a load of 7.8 average active sessions on orders (24 calls, waits: '
          "LWLock:BufferMapping 3.9, IO:WALWrite 2.4) at 2026-06-09T10:20:00Z")),
        ("till wrote 12 error lines, from 10:05:00Z to 10:50:00Z", "logs_search", SEARCH,
         "12 log lines of till (level error), the first at 2026-06-09T10:05:00Z, the last at 2026-06-09T10:50:00Z"),
    ],
)  # fmt: skip
def test_a_row_is_a_sentence_with_the_figures_of_the_claim(
    text: str, tool: str, record: dict[str, Any], said: str
) -> None:
    made = resolve(text, tool, record)
    assert (made.basis, made.text) == ("measured", said)
