"""Log files as they lie on machines: any format, rotated, compressed, large, damaged."""

import bz2
import gzip
import json
import lzma
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from live_rig import SPAN, ask, one
from stored_elsewhere import rows

from opsleuth.analysis.records import LogLine
from opsleuth.state.calls import ResultStatus
from opsleuth.tools.sources import compressed_files
from opsleuth.tools.sources.case_source import CaseSource
from opsleuth.tools.sources.logformat import LogLineReader, ParsedLine, service_of_file
from opsleuth.tools.spec import NotPermittedError, UnavailableError

AT = datetime(2026, 3, 3, 14, 0, 0, tzinfo=UTC).timestamp()
READ = LogLineReader().read
zstd = import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": zstd.compress,
}


@pytest.mark.parametrize(
    ("text", "time", "level", "message"),
    [
        ("2026-03-03T14:00:00.500Z ERROR pool exhausted", AT + 0.5, "ERROR", "ERROR pool exhausted"),
        ("2026-03-03 22:00:00,250+08:00 [main] WARN slow", AT + 0.25, "WARN", "[main] WARN slow"),
        ("[2026-03-03 14:00:00] app.ERROR: no", AT, "ERROR", "app.ERROR: no"),
        ('10.0.0.1 - - [03/Mar/2026:15:00:00 +0100] "GET / HTTP/1.1" 502 0', AT, None, None),
        ("Mar  3 14:00:00 node-1 cart[77]: connection refused", AT, None, "connection refused"),
        ('{"ts": 1772546400.5, "lvl": "error", "msg": "no"}', AT + 0.5, "error", "no"),
        ('{"time": 1772546400500, "severity": "WARN", "message": "no"}', AT + 0.5, "WARN", "no"),
        ("no time at all", None, None, "no time at all"),
        ("2026-99-03T14:00:00Z impossible", None, None, "impossible"),
        ('{"broken": ', None, None, '{"broken": '),
    ],
)
def test_a_line(text: str, time: float | None, level: str | None, message: str | None) -> None:
    line = READ(text, AT + 3600)
    assert (line.time, line.level, line.message) == (time, level, text if message is None else message)


def test_a_time_without_zone_is_read_in_the_zone_of_the_source() -> None:
    local = LogLineReader(timezone(timedelta(hours=8)))
    assert local.read("2026-03-03 22:00:00 slow", AT).time == AT
    assert local.read("2026-03-03 14:00:00Z slow", AT).time == AT


def test_a_year_is_the_one_before_the_file_was_last_written() -> None:
    line = READ("Dec 31 23:59:59 node cart: x", datetime(2027, 1, 2, tzinfo=UTC).timestamp())
    assert line.time == datetime(2026, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp()


@given(st.text(max_size=300))
def test_any_line_is_read(text: str) -> None:
    line = READ(text, AT)
    assert isinstance(line, LogLine)
    assert line.time is None or line.time >= 0 or text[:1].isdigit() or "[" in text


@pytest.mark.parametrize(
    ("name", "service"),
    [
        ("orders-api.log", "orders-api"),
        ("orders-api.log.2.gz", "orders-api"),
        ("orders-api-2026-03-03.log", "orders-api"),
        ("orders-api.log-20260303", "orders-api"),
        ("access.log.1", "access"),
        ("plain", "plain"),
    ],
)
def test_the_service_of_a_file(name: str, service: str) -> None:
    assert service_of_file(Path(name)) == service


def written(folder: Path, case: Path) -> None:
    """The lines of the built-in incident, one file for each service, the older half rotated and compressed."""
    by_service: dict[str, list[str]] = {}
    for row in sorted(rows(case / "logs.jsonl"), key=lambda r: datetime.fromisoformat(r["timestamp"])):
        by_service.setdefault(row["service"], []).append(json.dumps(row))
    for service, lines in by_service.items():
        half = len(lines) // 2
        (folder / f"{service}.log.1.gz").write_bytes(gzip.compress(("\n".join(lines[:half]) + "\n").encode()))
        (folder / f"{service}.log").write_text("\n".join(lines[half:]) + "\n")


async def test_rotated_files_hold_the_lines_of_the_folder(case: Path, tmp_path: Path) -> None:
    written(tmp_path, case)
    found = await one(kind="logfiles", files=[f"{tmp_path}/*.log*"]).read(["logs"], SPAN)
    recorded = CaseSource.open(case).recording(["logs"])
    told = sorted((line.time or 0, line.service, line.message, line.level or "") for line in found.logs or ())
    assert told == sorted(
        (line.time or 0, line.service, line.message, line.level or "") for line in recorded.logs or ()
    )


async def test_lines_that_continue_another(tmp_path: Path) -> None:
    (tmp_path / "cart.log").write_text(
        "2026-03-03T14:00:00Z ERROR failed\nTraceback (most recent call last):\n  File x\n2026-03-03T14:00:01Z INFO on\n"
    )
    found = (await one(kind="logfiles", files=[f"{tmp_path}/cart.log"]).read(["logs"], SPAN)).logs or ()
    assert [line.message.count("\n") for line in found] == [2, 0]


async def test_a_large_file_is_read_from_where_the_window_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "cart.log"
    day = datetime(2026, 3, 3, tzinfo=UTC)
    with path.open("w") as file:
        for second in range(0, 86_400, 1):
            file.write(f"{(day + timedelta(seconds=second)).isoformat()} INFO {second} {'x' * 60}\n")
    read: list[int] = []
    parse = LogLineReader.parse

    def counted(self: LogLineReader, text: str, year_of: float) -> ParsedLine:
        read.append(1)
        return parse(self, text, year_of)

    monkeypatch.setattr(LogLineReader, "parse", counted)
    result = await ask([one(kind="logfiles", files=[str(path)])], "logs_search", service="cart")
    assert result.matched == 5400
    assert 5400 < len(read) < 8_000


async def test_what_is_damaged_or_not_readable(tmp_path: Path) -> None:
    whole = gzip.compress(b"2026-03-03T14:00:00Z ERROR no\n" * 5000)
    (tmp_path / "cut.log.gz").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "other.log.zip").write_bytes(b"x")
    source = one(kind="logfiles", files=[f"{tmp_path}/*"])
    assert len((await source.read(["logs"], SPAN)).logs or ()) > 100
    told = " ".join(source.warnings)
    assert "cut.log.gz is damaged" in told
    assert "other.log.zip was not read" in told
    absent = await ask([source], "logs_search", text="nothing of the kind")
    assert absent.status is ResultStatus.NOT_RECORDED  # not all of it was looked at
    assert "cut.log.gz is damaged" in absent.record["not_read"]["s (logs)"]


@pytest.mark.parametrize("suffix", PACKERS)
async def test_files_as_rotation_packs_them(tmp_path: Path, suffix: str) -> None:
    pack = PACKERS[suffix]
    whole = pack(
        "".join(f"2026-03-03T14:00:00Z ERROR no {i * 7919 % 1009} {i}\n" for i in range(20_000)).encode()
    )
    (tmp_path / f"cart.log.1{suffix}").write_bytes(whole)
    source = one(kind="logfiles", files=[f"{tmp_path}/*"])
    lines = (await source.read(["logs"], SPAN)).logs or ()
    assert len(lines) == 20_000
    assert source.services == {"cart"}
    assert source.warnings == ()
    (tmp_path / f"cart.log.1{suffix}").write_bytes(whole[: len(whole) * 3 // 4])
    cut = one(kind="logfiles", files=[f"{tmp_path}/*"])
    found = await cut.read(["logs"], SPAN)
    assert len(found.logs or ()) < 20_000
    assert "damaged or cut short" in found.missed[0]
    (tmp_path / f"cart.log.1{suffix}").write_bytes(b"no such thing")
    assert "damaged" in (await one(kind="logfiles", files=[f"{tmp_path}/*"]).read(["logs"], SPAN)).missed[0]


async def test_zstd_without_its_extra_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compressed_files, "find_spec", lambda _: None)
    (tmp_path / "cart.log.zst").write_bytes(zstd.compress(b"x\n"))
    found = await one(kind="logfiles", files=[f"{tmp_path}/*"]).read(["logs"], SPAN)
    assert found.missed == (
        "cart.log.zst was not read: reading .zst needs the extra 'zstd': pip install 'opsleuth[zstd]'",
    )


async def test_no_file_and_no_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnavailableError, match="no file fits"):
        await one(kind="logfiles", files=[f"{tmp_path}/*.log"]).read(["logs"], SPAN)
    (tmp_path / "a.log").write_text("x\n")

    def refuse(self: Path, *_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "open", refuse)  # as root every file may be read
    with pytest.raises(NotPermittedError, match="check its permissions"):
        await one(kind="logfiles", files=[f"{tmp_path}/*.log"]).read(["logs"], SPAN)


async def test_of_two_sources_one_that_fails_does_not_hide_the_other(tmp_path: Path) -> None:
    (tmp_path / "cart.log").write_text("2026-03-03T14:00:00Z ERROR failed\n")
    good, bad = (
        one(kind="logfiles", files=[f"{tmp_path}/cart.log"]),
        one(kind="logfiles", files=["/no/such/*.log"]),
    )
    bad.name = "other"
    found = await ask([good, bad], "logs_search", service="cart", text="failed")
    assert found.status is ResultStatus.OK
    assert "no file fits" in found.record["not_read"]["other (logs)"]
    absent = await ask([good, bad], "logs_search", service="cart", text="nothing of the kind")
    assert absent.status is ResultStatus.NOT_RECORDED
