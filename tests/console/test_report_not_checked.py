"""What could not be looked at stands once in a report, whoever said so."""

import pytest

from opsleuth.console.report_content import list_unavailable_data


@pytest.mark.parametrize(
    ("rows", "shown"),
    [
        (["traces: no source (none configured)", "traces"], ["traces (none configured)"]),
        (["changes", "changes_list: no change history"], ["changes_list: no change history"]),
        (["Traces.", "traces"], ["traces"]),
        (["logs of cart before 14:00", "logs"], ["logs of cart before 14:00"]),
        (["traces", "events"], ["traces", "events"]),
    ],
)
def test_what_was_not_checked_stands_once(rows: list[str], shown: list[str]) -> None:
    assert list_unavailable_data({"not_available": rows}) == shown
