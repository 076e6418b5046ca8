"""A real journal, written by systemd and read by journalctl."""

from pathlib import Path

import pytest
import servers
from live_rig import SPAN, ask, one
from servers import journal_entry
from stored_elsewhere import rows

from opsleuth.analysis.records import TimeRange
from opsleuth.state.calls import ResultStatus
from opsleuth.tools.sources.case_source import CaseSource
from opsleuth.tools.spec import UnavailableError


async def test_the_lines_are_those_of_the_folder(journal: Path, case: Path) -> None:
    found = await one(kind="journal", files=[str(journal)]).read(["logs"], SPAN)
    recorded = CaseSource.open(case).recording(["logs"])
    told = [(line.time, line.service, line.pod, line.message) for line in found.logs or ()]
    expected = [(line.time, line.service, line.pod, line.message) for line in recorded.logs or ()]
    assert sorted(told) == sorted(expected)
    assert {line.level for line in found.logs or ()} == {"info", "warning", "error"}


async def test_a_search_says_what_it_scanned(journal: Path, case: Path) -> None:
    source = one(kind="journal", files=[str(journal)])
    found = await ask([source], "logs_search", text="slow query", level="warn")
    assert found.status is ResultStatus.OK
    nothing = await ask([source], "logs_search", text="no such words")
    assert (nothing.status, nothing.matched) == (ResultStatus.NONE_MATCHED, 0)
    assert nothing.scanned == len(rows(case / "logs.jsonl"))


async def test_a_time_that_the_journal_does_not_cover(journal: Path) -> None:
    result = await ask(
        [one(kind="journal", files=[str(journal)])],
        "logs_search",
        since="2020-01-01T00:00:00Z",
        until="2020-01-01T01:00:00Z",
    )
    assert result.status is ResultStatus.NOT_RECORDED


async def test_a_search_that_is_left_ends_the_program(journal: Path) -> None:
    source = one(kind="journal", files=[str(journal)])
    lines = source.scan_logs()  # type: ignore[attr-defined]
    assert next(lines).service
    lines.close()


async def test_no_such_file(tmp_path: Path) -> None:
    servers.need("journalctl")
    with pytest.raises(UnavailableError, match="journalctl cannot read this"):
        await one(kind="journal", files=[str(tmp_path / "none.journal")]).read(["logs"], SPAN)


async def test_units_kernel_and_odd_messages(tmp_path: Path) -> None:
    base = 1_772_542_800_000_000

    def entry(second: int, **fields: str) -> str:
        head = [("__REALTIME_TIMESTAMP", str(base + second * 1_000_000)), ("__MONOTONIC_TIMESTAMP", str(second + 1)),
                ("_BOOT_ID", "0" * 31 + "1"), ("_MACHINE_ID", "0" * 31 + "2"), ("_HOSTNAME", "node-1")]  # fmt: skip
        return journal_entry([*head, *fields.items()])

    path = servers.journal(
        tmp_path,
        entry(1, MESSAGE="Started cart.service", PRIORITY="6", SYSLOG_IDENTIFIER="systemd", UNIT="cart.service",
              MESSAGE_ID="39f53479d3a045ac8e11786248231fbf")
        + entry(2, MESSAGE="cart.service: Failed with result 'oom-kill'.", PRIORITY="4", SYSLOG_IDENTIFIER="systemd",
                UNIT="cart.service", MESSAGE_ID="d9b373ed55a64feb8242e02dbe79a49c")
        + entry(3, MESSAGE="Out of memory: Killed process 4711 (cart)", PRIORITY="3", _TRANSPORT="kernel", SYSLOG_IDENTIFIER="kernel")
        + entry(4, MESSAGE="hello \x1b[31mred", PRIORITY="6", _SYSTEMD_UNIT="cart@7.service", SYSLOG_IDENTIFIER="cart"),
    )  # fmt: skip
    source = one(kind="journal", files=[str(path)])
    found = await source.read(["events", "logs"], TimeRange(base / 1e6, base / 1e6 + 60))
    assert [(e.source, e.object, e.type, e.reason) for e in found.events or ()] == [
        ("systemd", "Unit/cart", "Normal", "Started"),
        ("systemd", "Unit/cart", "Warning", "Failed"),
        ("kernel", "Node/node-1", "Warning", "Warning"),
    ]
    last = (found.logs or ())[-1]
    assert (last.service, last.host, last.message) == ("cart", "node-1", "hello \x1b[31mred")
    assert [check.state for check in await source.check()] == ["ok", "ok"]
