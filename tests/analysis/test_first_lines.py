"""A new failure begins with its first line, whatever numbers stand in the line that is quoted."""

import pytest

from opsleuth.analysis.first_lines import add_first_times
from opsleuth.analysis.records import AlertFacts, Finding, LogLine, Recording, TimeRange


@pytest.mark.parametrize(
    ("form", "gap"),
    [
        ("import of file {} failed: no space", " "),
        ("job {} failed: connect ECONNREFUSED", " "),
        ("{} rows lost", "\n\tat "),
    ],
)
@pytest.mark.parametrize("quoted", [1, 10, 57])
def test_first_line_of_the_form_is_the_onset(form: str, gap: str, quoted: int) -> None:
    lines = [
        LogLine(1_000.0 + place, "jobs", form.format(place).replace(": ", f":{gap}"), "error")
        for place in range(60)
    ]
    recording = Recording(alert=AlertFacts(text=""), window=TimeRange(0.0, 2_000.0), logs=lines)
    finding = Finding(
        detector="new_failures", signal="logs", service="jobs", kind="errors", size=9.0, text="",
        figures={"failure": f'"{form.format(quoted)}"'},
    )  # fmt: skip
    [found] = add_first_times(recording, [finding])
    assert found.onset == 1_000.0
