"""Log files that ripgrep looks through first: the same records are found as by reading every line."""

import gzip
import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import servers
from backends import AT
from hypothesis import given, settings
from hypothesis import strategies as st
from live_rig import ask, one
from tiers import COSTLY

from opsleuth.state.calls import ResultStatus
from opsleuth.tools.sources import log_file_set, logfiles, ripgrep, time_seek
from opsleuth.tools.spec import CallResult

WINDOW: dict[str, Any] = {"since": "2026-03-03T13:30:00Z", "until": "2026-03-03T14:10:00Z"}
PARTS = st.lists(
    st.sampled_from([b"pool", b"POOL", b"full ", b"\xff\xfe", b"\x00", "Straße ﬁ K".encode(), b'"', b"\\", b"\xe2\x82", b"\r", b"y" * 90, b"[x]", b"\x1b["]),
    max_size=5,
).map(b"".join)  # fmt: skip
HEADS = st.sampled_from(["text", "json", "escaped", "bare"])
RECORDS = st.lists(
    st.tuples(
        st.integers(0, 400), HEADS, PARTS, st.lists(PARTS, max_size=3), st.sampled_from([b"\n", b"\r\n"])
    ),
    min_size=4,
    max_size=24,
)
TEXTS = st.sampled_from(["pool", "ol", "full [X]", "ss", "fi", "k", "y" * 30, '"', "\\", "absent", "é"])


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every file is worth it, lines are long and blocks large from a few bytes on."""
    servers.need("rg")
    monkeypatch.setattr(logfiles, "PAYS", -(10**9))
    for module in (logfiles, log_file_set):
        monkeypatch.setattr(module, "LONGEST_LINE", 100)
    for module in (logfiles, log_file_set, time_seek):
        monkeypatch.setattr(module, "BLOCK", 256)


def written(records: Sequence[tuple[int, str, bytes, Sequence[bytes], bytes]], single: bool) -> bytes:
    """A log in order of time, from before the window to after it."""
    at, lines = float(AT) - 3_000, []
    for step, form, message, more, end in records:
        at += step
        time = datetime.fromtimestamp(at, UTC).isoformat().encode()
        text = message.replace(b"\r", b"").decode("latin-1")
        head = {
            "text": time + b" ERROR " + message,
            "json": json.dumps({"time": time.decode(), "msg": text, "pod": "pool-1"}, ensure_ascii=False).encode(),
            "escaped": json.dumps({"ts": at, "message": text or 7.0, "service": "web"}).encode(),
            "bare": time,
        }[form]  # fmt: skip
        lines += [head, *([] if single else more)]
        lines[-1] += end.removesuffix(b"\n")
    return b"\n".join(lines) + b"\n"


def count_cut_lines(result: CallResult) -> int:
    """Of how many lines only the beginning was read, as the record notes."""
    notes = result.record.get("not_read", {})
    assert notes.keys() <= {"s (logs)"}
    counts = re.findall(r"of ([\d,]+) lines? longer than", notes.get("s (logs)", ""))
    return sum(int(count.replace(",", "")) for count in counts)


async def found(folder: Path, **wanted: Any) -> CallResult:
    return await ask([one(kind="logfiles", files=[f"{folder}/*.log*"])], "logs_search", **wanted, **WINDOW)


@pytest.mark.slow
@settings(COSTLY, max_examples=25)
@given(RECORDS, TEXTS, st.sampled_from([{}, {"service": "web"}, {"level": "error"}]), st.booleans())
async def test_the_same_records_are_found(
    records: Any, text: str, more: dict[str, Any], single: bool
) -> None:
    with TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        log = written(records, single)
        (Path(name) / "cart.log").write_bytes(log)
        sifted = await found(Path(name), text=text, **more)
        patch.setattr(ripgrep, "find_ripgrep", lambda: None)
        plain = await found(Path(name), text=text, **more)
    assert sifted.status == plain.status
    uncounted = [
        {k: v for k, v in r.record.items() if k not in ("scanned", "not_read")} for r in (sifted, plain)
    ]
    assert uncounted[0] == uncounted[1]
    assert count_cut_lines(sifted) <= count_cut_lines(
        plain
    )  # a long line that ripgrep finds nothing in misses nothing
    if single and max(map(len, log.split(b"\n"))) < 100:  # where no line continues another
        assert sifted.scanned == plain.scanned


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    lines = [
        f"{datetime.fromtimestamp(AT - 3_000 + i, UTC).isoformat()} INFO request {i}" for i in range(5_000)
    ]
    lines[3_100] += " pool exhausted\n  at pool.get\n  at main"
    (tmp_path / "cart.log").write_text("\n".join(lines) + "\n")
    return tmp_path


async def test_what_was_looked_for_is_evidence_and_all_lines_are_counted(folder: Path) -> None:
    result = await found(folder, text="Pool Exhausted")
    assert (result.matched, result.scanned) == (1, 2_400 + 2)  # what continues a line is counted as one
    assert "rg -e '(?i:Pool Exhausted)" in result.query
    assert "at main" in result.record["lines"][0]["message"]


async def test_packed_files_are_read_as_ever(folder: Path) -> None:
    text = (folder / "cart.log").read_bytes()
    (folder / "cart.log.1.gz").write_bytes(gzip.compress(text))
    result = await found(folder, text="pool exhausted")
    assert result.matched == 2
    assert "rg -e" not in result.query


@pytest.mark.parametrize(
    ("script", "status"),
    [
        ("exit 2", ResultStatus.UNAVAILABLE),
        ("kill -9 $$", ResultStatus.TIMEOUT),  # as the search ends it where time is up
        ("echo 17 >&2; exit 3", ResultStatus.UNAVAILABLE),
    ],
)
async def test_a_program_that_fails_is_said(
    folder: Path, monkeypatch: pytest.MonkeyPatch, script: str, status: ResultStatus
) -> None:
    (folder / "rg").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "rg").chmod(0o755)
    monkeypatch.setattr(ripgrep, "find_ripgrep", lambda: str(folder / "rg"))
    result = await found(folder, text="pool")
    assert result.status is status
    assert "ripgrep" in result.record["error"]


async def test_a_program_that_does_not_end_is_ended(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "rg").write_text("#!/bin/sh\nexec sleep 600\n")
    (folder / "rg").chmod(0o755)
    monkeypatch.setattr(ripgrep, "find_ripgrep", lambda: str(folder / "rg"))
    monkeypatch.setattr(ripgrep, "SECONDS", 0.1)
    result = await found(folder, text="pool")
    assert result.status is ResultStatus.TIMEOUT
    assert "no time left to get through cart.log" in result.record["error"]
