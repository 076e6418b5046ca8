"""CSV and Parquet as sources: lines and samples by the names of columns, what is broken said, the extra named."""

import gzip
from pathlib import Path

import duckdb
import pytest
from live_rig import SPAN, ask, one
from stored_elsewhere import rows

from opsleuth.state.calls import ResultStatus
from opsleuth.tools.sources import logtables
from opsleuth.tools.sources.case_source import CaseSource

LOGS = """\
Timestamp,Service,Level,Message,Tenant
2026-03-03T14:00:00Z,cart,error,"pool, ""main"", is
exhausted",7
1772546401,web,info,up,
2026-03-03T22:00:02+08:00,,warn,slow,
"""


def parquet(path: Path, select: str) -> None:
    with duckdb.connect(":memory:") as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute(f"COPY ({select}) TO '{path}' (FORMAT parquet)")


async def test_rows_of_csv_are_lines_packed_or_not(tmp_path: Path) -> None:
    for name, text in (("cart.csv", LOGS.encode()), ("mail.csv.gz", gzip.compress(LOGS.encode()))):
        (tmp_path / name).write_bytes(text)
        lines = (await one(kind="logfiles", files=[str(tmp_path / name)]).read(["logs"], SPAN)).logs or ()
        named = name.partition(".")[0]
        assert [(line.time, line.service, line.level) for line in lines] == [
            (1772546400.0, "cart", "error"), (1772546401.0, "web", "info"), (1772546402.0, named, "warn")]  # fmt: skip
        assert lines[0].message == 'pool, "main", is\nexhausted'
        assert lines[0].extra == {"tenant": "7"}


async def test_rows_of_parquet_are_lines_whatever_their_types(tmp_path: Path) -> None:
    parquet(
        tmp_path / "cart.parquet",
        "SELECT TIMESTAMPTZ '2026-03-03 14:00:00+00' AS ts, 'full' AS message, 1.5::DECIMAL(4,2) AS load, 'ab'::BLOB AS raw, "
        "[1, 2] AS parts, {'a': 1} AS inner_one, INTERVAL 2 SECOND AS took "
        "UNION ALL SELECT NULL, 'no time', NULL, NULL, NULL, NULL, NULL",
    )
    found = await ask([one(kind="logfiles", files=[f"{tmp_path}/*"])], "logs_search", text="")
    assert (found.status, found.scanned) == (ResultStatus.OK, 2)
    first = found.record["lines"][0]
    assert (first["service"], first["time"]) == ("cart", "2026-03-03T14:00:00Z")
    assert first["extra"] == {"load": 1.5, "raw": "ab", "parts": [1, 2], "inner_one": {"a": 1}, "took": "0:00:02"}  # fmt: skip


async def test_broken_rows_take_the_word_of_absence_away(tmp_path: Path) -> None:
    (tmp_path / "cart.csv").write_text(f"{LOGS}only one cell\n")
    (tmp_path / "cart.parquet").write_bytes(b"PAR1 no more")
    found = await ask([one(kind="logfiles", files=[f"{tmp_path}/*"])], "logs_search", text="no such words")
    assert found.status is ResultStatus.NOT_RECORDED
    missed = found.record["not_read"]["s (logs)"]
    assert "cart.csv: 1 of 4 rows are broken" in missed
    assert "cart.parquet: the file is damaged" in missed


@pytest.mark.parametrize(
    ("kind", "tool", "status"),
    [
        ("logfiles", "logs_search", ResultStatus.UNAVAILABLE),
        ("metricfiles", "metrics_list", ResultStatus.NOT_RECORDED),
    ],
)
async def test_without_the_extra_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, tool: str, status: ResultStatus
) -> None:
    parquet(tmp_path / "cart.parquet", "SELECT 1 AS value")
    monkeypatch.setattr(logtables, "can_read_parquet", lambda: False)
    source = one(kind=kind, files=[f"{tmp_path}/*"])
    checks = await source.check()
    assert any("pip install 'opsleuth[parquet]'" in check.text for check in checks)
    found = await ask([source], tool)
    assert found.status is status
    assert "pip install 'opsleuth[parquet]'" in str(found.record)


@pytest.mark.parametrize("form", ["csv", "csv.gz", "parquet"])
async def test_metrics_are_those_of_the_case(tmp_path: Path, case: Path, form: str) -> None:
    """One file by day or host: series are put together again."""
    head, *lines = (case / "metrics.csv").read_text().splitlines(keepends=True)
    for number in range(3):
        text = head + "".join(lines[number::3])
        path = tmp_path / f"{number}.{form}"
        if form == "parquet":
            (tmp_path / "part").write_text(text)
            parquet(path, f"FROM read_csv('{tmp_path / 'part'}', all_varchar = true)")
        else:
            path.write_bytes(gzip.compress(text.encode()) if form == "csv.gz" else text.encode())
    source = one(kind="metricfiles", files=[f"{tmp_path}/*.{form}"], before=0)
    found = {
        (s.service, s.metric, s.instance): s for s in (await source.read(["metrics"], SPAN)).metrics or ()
    }
    recorded = CaseSource.open(case).recording(["metrics"]).metrics or ()
    assert len(found) == len(recorded) > 0
    for series in recorded:
        inside = [p for p in zip(series.times, series.values, strict=True) if SPAN.start <= p[0] < SPAN.end]
        same = found[series.service, series.metric, series.instance]
        assert list(zip(same.times, same.values, strict=True)) == inside
    assert len(rows(case / "metrics.csv")) == len(lines)
    assert [check.state for check in await source.check()] == ["ok"]


async def test_metrics_with_troubles(tmp_path: Path) -> None:
    text = "timestamp,service,metric,value,unit\n2026-03-03T14:00:00Z,cart,load,much,%\n2026-03-03T14:00:00Z,cart,load,7,%\n"  # fmt: skip
    (tmp_path / "m.csv").write_text(text)
    source = one(kind="metricfiles", files=[f"{tmp_path}/m.csv"])
    [series] = (await source.read(["metrics"], SPAN)).metrics or ()
    assert series.values == (7.0,)
    assert "1 of 2 rows are broken" in " ".join(source.warnings)
    found = await ask([one(kind="metricfiles", files=[f"{tmp_path}/none*"])], "metrics_list")
    assert "no file fits" in found.record["error"]
