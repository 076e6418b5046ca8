"""A case whose files lie at the border of what can be: nothing of it ends a run, and what was left out is said."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from made_up import INCIDENT, T0, case_folder

from opsleuth.tools.sources.case_source import CaseSource, NotACaseError

EVENT = {"timestamp": "2024-05-01T14:00:00Z", "source": "kubernetes", "object": "pod/a", "count": 1}


def warnings_of(folder: Path) -> str:
    case = CaseSource.open(folder)
    case.recording()
    return "\n".join(case.warnings)


def test_a_path_that_cannot_be_looked_at_is_no_case(tmp_path: Path) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    with pytest.raises(NotACaseError, match="no such folder"):
        CaseSource.open(loop)
    with pytest.raises(NotACaseError, match="check its path"):
        CaseSource.open(tmp_path / ("a" * 5000))


def test_a_pipe_in_the_place_of_the_incident_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "incident.json")
    with pytest.raises(NotACaseError, match="is not a file"):
        CaseSource.open(tmp_path)


@pytest.mark.parametrize(
    "start", ["0001-01-01T00:00:00Z", "0001-01-01T00:00:00+14:00", "1600-01-01T00:00:00Z"]
)
def test_a_window_outside_of_all_calendars_is_refused(tmp_path: Path, start: str) -> None:
    incident = INCIDENT | {"window": {"start": start, "end": "2024-05-01T14:30:00Z"}}
    with pytest.raises(NotACaseError, match=r"window\.start.*out of range: 1900 to 2499"):
        CaseSource.open(case_folder(tmp_path, incident))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"timestamp": "0001-01-01T00:00:00+14:00"}, "the year 1 is out of range"),
        ({"timestamp": "9999-12-31T23:59:59-14:00"}, "the year 9999 is out of range"),
        ({"timestamp": "2" * 100_000}, "is not an RFC 3339 time"),
        ({"object": "a" * 301}, "a name has at most 300"),
        ({"count": 2**64}, "more than can be counted"),
        ({"count": 10**400}, "is not a finite number"),
        ({"count": "x" * 100_000}, "is not a number"),
        ({"extra": json.loads("[" * 80 + "]" * 80)}, "more than 64 nested lists or objects"),
    ],
)
def test_a_value_that_nothing_later_could_bear_breaks_its_row_only(
    tmp_path: Path, change: dict[str, Any], said: str
) -> None:
    rows = "".join(json.dumps(row) + "\n" for row in (EVENT, EVENT | change))
    folder = case_folder(tmp_path, events__jsonl=rows)
    assert len(CaseSource.open(folder).recording().events or ()) == 1
    warning = warnings_of(folder)
    assert "1 of 2 rows are broken" in warning
    assert said in warning
    assert len(warning) < 300


@pytest.mark.parametrize("value", ["1e308", "-1e200", "1e999"])
def test_a_sample_whose_square_is_no_number_is_broken(tmp_path: Path, value: str) -> None:
    row = f"2024-05-01T14:02:00Z,cart,latency,{value},s\n"
    warning = warnings_of(case_folder(tmp_path, metrics__csv=f"timestamp,service,metric,value,unit\n{row}"))
    assert "1 of 1 row is broken" in warning


def test_an_aggregate_window_that_looks_like_a_time_must_be_one(tmp_path: Path) -> None:
    rows = "window,service,level,pattern,count,traces_in_window\n"
    rows += "".join(
        f"{name},cart,ERROR,boom,1,\n" for name in ("baseline", "2024-05-01T14:00Z", "2024-13-99T99:99Z")
    )
    folder = case_folder(tmp_path, log_patterns__csv=rows)
    assert [p.window for p in CaseSource.open(folder).recording().patterns or ()] == [
        "baseline",
        "2024-05-01T14:00Z",
    ]
    assert "1 of 3 rows are broken" in warnings_of(folder)


def test_a_column_that_stands_twice_is_told(tmp_path: Path) -> None:
    rows = "timestamp,service,metric,value,unit,value\n2024-05-01T14:00:00Z,cart,cpu,5,%,900\n"
    folder = case_folder(tmp_path, metrics__csv=rows)
    assert "duplicate columns, of which the last was read: 'value'" in warnings_of(folder)
    (series,) = CaseSource.open(folder).recording().metrics or ()
    assert (series.times, series.values) == ((T0,), (900.0,))
