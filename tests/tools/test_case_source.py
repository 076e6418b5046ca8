"""A case folder is read as far as it can be; what is wrong with it is said, and never ends a run."""

import gzip
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up import INCIDENT, T0, case_folder

from opsleuth.analysis.records import LogLine, MetricSeries
from opsleuth.tools.sources import case_source as case_module
from opsleuth.tools.sources.case_source import CaseSource, NotACaseError
from opsleuth.tools.sources.table_files import FileProblems, find_table_files, read_rows

METRICS = """timestamp,service,metric,value,unit
2024-05-01T14:01:00Z,cart,latency,0.3,s
2024-05-01T14:00:00Z,cart,latency,0.2,s
2024-05-01T14:00:00Z,stock,cpu,20,%
"""


def line(**fields: Any) -> str:
    return (
        json.dumps({"timestamp": "2024-05-01T14:00:00Z", "service": "cart", "message": "hi", **fields}) + "\n"
    )


def test_a_case_with_only_metrics(tmp_path: Path) -> None:
    case = CaseSource.open(case_folder(tmp_path, metrics__csv=METRICS))
    recording = case.recording()
    assert case.capabilities == {"metrics"}
    assert recording.metrics == [
        MetricSeries("cart", "latency", "s", (T0, T0 + 60), (0.2, 0.3)),
        MetricSeries("stock", "cpu", "%", (T0,), (20.0,)),
    ]
    assert recording.logs is None
    assert case.warnings == ()


def test_a_case_with_no_tables_has_no_capabilities(tmp_path: Path) -> None:
    case = CaseSource.open(case_folder(tmp_path))
    assert (case.capabilities, case.warnings) == (frozenset(), ())
    assert case.recording().metrics is None


def test_the_facts_keep_the_exact_instants(tmp_path: Path) -> None:
    incident = CaseSource.open(case_folder(tmp_path)).incident
    assert incident.alert is not None
    assert incident.alert.fired_at is not None
    assert incident.alert.fired_at.isoformat() == "2024-05-01T14:11:00+00:00"
    assert incident.alert_facts.onset == T0 + 600
    assert (incident.span.start, incident.span.end) == (T0, T0 + 1800)
    assert incident.window.origin == "case"
    assert incident.question == "cart is slow"


def without(*names: str) -> dict[str, Any]:
    return {key: value for key, value in INCIDENT.items() if key not in names}


@pytest.mark.parametrize(
    ("incident", "said"),
    [
        ("{", "is not JSON"),
        ("[]", "a JSON list, not an object"),
        (without("window"), "window: Field required"),
        (without("id"), "id: Field required"),
        (
            INCIDENT | {"window": {"start": "2024-05-01T14:00:00", "end": "2024-05-01T14:30:00Z"}},
            "has no zone",
        ),
        (INCIDENT | {"window": {"start": 1714572000, "end": 1714573800}}, "RFC 3339"),
        (
            INCIDENT | {"window": {"start": "2024-05-01T14:30:00Z", "end": "2024-05-01T14:30:00Z"}},
            "ends before",
        ),
        (INCIDENT | {"alert": {"service": "cart"}}, "alert.text: Field required"),
        (INCIDENT | {"services": "cart"}, "services"),
    ],
)
def test_a_broken_incident_is_no_case(tmp_path: Path, incident: Any, said: str) -> None:
    with pytest.raises(NotACaseError) as caught:
        CaseSource.open(case_folder(tmp_path, incident))
    assert said in str(caught.value)
    assert str(tmp_path) in str(caught.value)


def test_a_folder_that_is_no_case_says_why(tmp_path: Path) -> None:
    with pytest.raises(NotACaseError, match="no such folder"):
        CaseSource.open(tmp_path / "absent")
    with pytest.raises(NotACaseError, match=r"has no incident\.json"):
        CaseSource.open(tmp_path)
    case_folder(tmp_path / "shop-1")
    with pytest.raises(NotACaseError, match=r"holds 1 case \(shop-1\)"):
        CaseSource.open(tmp_path)
    with pytest.raises(NotACaseError, match="it is a file"):
        CaseSource.open(tmp_path / "shop-1" / "incident.json")


def test_broken_rows_are_counted_and_the_rest_is_read(tmp_path: Path) -> None:
    rows = [
        line(),
        "not json\n",
        "[]\n",
        line(message=7),
        line(timestamp="2024-05-01"),
        line(timestamp=1714572000),
        "\n",
    ]
    rows += ['{"timestamp": "2024-05-01T14:00:00Z", "service": "cart"}\n', line(message="last")]
    case = CaseSource.open(case_folder(tmp_path, logs__jsonl="".join(rows)))
    assert [entry.message for entry in case.recording().logs or ()] == ["hi", "last"]
    (warning,) = case.warnings
    assert warning.startswith("logs.jsonl: 6 of 8 rows are broken and were left out (line 2: no JSON")


@pytest.mark.parametrize("value", ["", "NaN", "inf", "fast"])
def test_a_sample_without_a_value_is_broken_never_zero(tmp_path: Path, value: str) -> None:
    case = CaseSource.open(
        case_folder(tmp_path, metrics__csv=METRICS + f"2024-05-01T14:02:00Z,cart,latency,{value},s\n")
    )
    assert len((case.recording().metrics or ())[0].values) == 2
    assert "1 of 4 rows are broken" in case.warnings[0]


def test_a_row_with_too_few_cells_and_a_table_without_its_columns(tmp_path: Path) -> None:
    case = CaseSource.open(
        case_folder(
            tmp_path, metrics__csv=METRICS + "2024-05-01T14:02:00Z,cart\n", topology__csv="from,to\na,b\n"
        )
    )
    assert case.recording().topology == []
    assert "line 5: 2 cells under 5 columns" in case.warnings[1]
    assert (
        "topology.csv: 1 of 1 row is broken and was left out (line 2: no 'caller' among 'from, to')"
        in case.warnings
    )


def test_a_key_that_is_almost_one_that_is_read_is_pointed_out(tmp_path: Path) -> None:
    slip = {"text": "slow", "service": "cart", "fired": "2024-05-01T14:05:00Z", "team": "shop"}
    folder = case_folder(tmp_path, incident__json=json.dumps(INCIDENT | {"alert": slip, "owner": "shop"}))
    assert CaseSource.open(folder).warnings == (
        "incident.json: alert.fired is not read; is it meant to be fired_at?",
    )


def test_what_lost_most_of_its_rows_is_told_first(tmp_path: Path) -> None:
    folder = case_folder(
        tmp_path,
        metrics__csv=METRICS + "2024-05-01T14:02:00Z,cart\n",
        topology__csv="from,to\na,b\n",
        notes__txt="",
    )
    case = CaseSource.open(folder)
    case.recording()
    assert [warning.partition(" ")[0] for warning in case.warnings] == [
        "topology.csv:",
        "metrics.csv:",
        "notes.txt",
    ]


def test_times_without_a_zone_are_read_as_utc_and_said_so(tmp_path: Path) -> None:
    case = CaseSource.open(case_folder(tmp_path, logs__jsonl=line(timestamp="2024-05-01T14:00:00")))
    assert [entry.time for entry in case.recording().logs or ()] == [T0]
    assert case.warnings == ("logs.jsonl: 1 time has no zone and was read as UTC",)


@pytest.mark.parametrize("own", ["time of recording", "line before"])
def test_a_time_that_is_not_the_logs_own_is_no_time(tmp_path: Path, own: str) -> None:
    case = CaseSource.open(
        case_folder(tmp_path, logs__jsonl=line(timestamp_source=own) + line(timestamp_source="log"))
    )
    assert [entry.time for entry in case.recording().logs or ()] == [None, T0]


def test_extra_columns_are_kept(tmp_path: Path) -> None:
    case = CaseSource.open(
        case_folder(tmp_path, logs__jsonl=line(http_status=503, stream="stderr", empty=None))
    )
    assert (case.recording().logs or [])[0].extra == {"http_status": 503, "stream": "stderr"}


def test_compressed_tables_and_a_damaged_one(tmp_path: Path) -> None:
    whole = gzip.compress(METRICS.encode())
    lines = (line(message=hashlib.sha256(b"%d" % i).hexdigest()) for i in range(1000))
    cut = gzip.compress("".join(lines).encode())[:30_000]
    case = CaseSource.open(case_folder(tmp_path, metrics__csv__gz=whole, logs__jsonl__gz=cut))
    recording = case.recording()
    assert len(recording.metrics or ()) == 2
    assert len(recording.logs or ()) > 100
    assert any("logs.jsonl.gz: the compressed file is damaged or cut short" in w for w in case.warnings)


def test_unknown_and_doubled_files_are_said(tmp_path: Path) -> None:
    case = CaseSource.open(
        case_folder(
            tmp_path, notes__txt="x", metrics__csv=METRICS, metrics__csv__gz=gzip.compress(METRICS.encode())
        )
    )
    assert "notes.txt was ignored: no file of that name belongs to a case" in case.warnings
    assert "metrics.csv.gz was not read: metrics.csv holds the same table" in case.warnings


def test_parquet_without_its_extra_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(case_module, "can_read_parquet", lambda: False)
    case = CaseSource.open(case_folder(tmp_path, metrics__parquet=b"PAR1"))
    assert case.capabilities == frozenset()
    assert "pip install 'opsleuth[parquet]'" in case.warnings[0]


def test_bytes_that_are_no_text_and_a_byte_order_mark(tmp_path: Path) -> None:
    case = CaseSource.open(
        case_folder(
            tmp_path, metrics__csv=b"\xef\xbb\xbf" + METRICS.replace("cart", "caf\u00e9").encode("latin-1")
        )
    )
    assert {s.service for s in case.recording().metrics or ()} == {"caf\ufffd", "stock"}


def test_runbooks(tmp_path: Path) -> None:
    folder = case_folder(tmp_path)
    (folder / "runbooks").mkdir()
    (folder / "runbooks" / "slow.md").write_text("# Slow")
    case = CaseSource.open(folder)
    assert case.capabilities == {"runbooks"}
    assert [book.title for book in case.recording(["runbooks"]).runbooks or ()] == ["Slow"]


def test_a_file_that_cannot_be_read_is_a_warning(tmp_path: Path) -> None:
    folder = case_folder(tmp_path, logs__jsonl=line())
    case = CaseSource.open(folder)
    (folder / "logs.jsonl").unlink()
    assert case.recording().logs == []
    assert "logs.jsonl: cannot be read" in case.warnings[0]


async def test_a_table_is_read_once(tmp_path: Path) -> None:
    case = CaseSource.open(case_folder(tmp_path, logs__jsonl=line(), metrics__csv=METRICS))
    first = await case.read(["logs"], case.incident.span)
    again = await case.read(["logs", "metrics"], case.incident.span)
    assert first.metrics is None
    assert first.logs is again.logs


def test_more_rows_than_are_held_are_still_scanned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(case_module, "MAX_ROWS", 4)
    early = [line(timestamp="2024-04-30T00:00:00Z", message=f"early {i}") for i in range(5)]
    within = [line(message=f"within {i}") for i in range(6)]
    case = CaseSource.open(case_folder(tmp_path, logs__jsonl="".join(early + within)))
    held = [entry.message for entry in case.recording().logs or ()]
    assert held == ["early 0", "early 1", *(f"within {i}" for i in range(4))]
    assert "5 of 11 rows were left out to bound memory" in case.warnings[0]
    assert len(list(case.scan_logs())) == 11


@given(st.binary(max_size=300))
def test_any_bytes_are_read_without_an_exception(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    folder = tmp_path_factory.mktemp("case")
    for name in ("logs.jsonl", "metrics.csv"):
        (folder / name).write_bytes(content)
        trouble = FileProblems(name)
        rows = list(read_rows(find_table_files(folder, name)[0], trouble))
        assert len(rows) + trouble.broken == trouble.rows


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=20)


@given(st.lists(st.builds(LogLine, time=st.just(T0), service=TEXT, message=TEXT), max_size=5))
def test_what_is_written_is_read_back(tmp_path_factory: pytest.TempPathFactory, lines: list[LogLine]) -> None:
    text = "".join(line(service=entry.service, message=entry.message) for entry in lines)
    case = CaseSource.open(case_folder(tmp_path_factory.mktemp("case"), logs__jsonl=text))
    assert case.recording().logs == lines
    assert case.warnings == ()


def long_log(order: list[int]) -> str:
    times = (f"2024-05-01T{minute // 60:02}:{minute % 60:02}:00Z" for minute in order)
    return "".join(line(timestamp=time, message="x" * 500) for time in times)


@pytest.mark.parametrize("disorder", [False, True])
def test_a_stretch_of_a_long_log_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, disorder: bool
) -> None:
    monkeypatch.setattr(case_module, "HELD_BYTES", 1000)
    minutes = list(range(1440))
    text = long_log(minutes[720:] + minutes[:720] if disorder else minutes)
    case = CaseSource.open(case_folder(tmp_path, logs__jsonl=text))
    lines = list(case.scan_logs(span=case.incident.span))
    inside = [entry for entry in lines if T0 <= (entry.time or 0) < T0 + 1800]
    assert len(inside) == 30
    assert len(lines) == 1440 if disorder else len(lines) < 400
    held = case.recording().logs or ()
    assert len([entry for entry in held if T0 <= (entry.time or 0) < T0 + 1800]) == 30
    assert any("a long log" in warning for warning in case.warnings) is not disorder
