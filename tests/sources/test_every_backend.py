"""Every source over HTTP against what backends do to their clients: each failure in its class, none in the way of others."""

import asyncio
import json
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from backends import AT, BACKENDS, KINDS, as_toml, settings_of
from contract_server import contract_server
from live_rig import SPAN, ask, opened
from rude_server import RudeServer
from servers import free_port
from stored_runs import Program

from opsleuth.analysis.records import Recording
from opsleuth.state.calls import ResultStatus
from opsleuth.state.clock import FakeClock
from opsleuth.state.run_status import ExitCode
from opsleuth.tools.sources.live_source import LiveSource
from opsleuth.tools.sources.memory_source import ROWS
from opsleuth.tools.spec import NotPermittedError, TransientError, UnavailableError

TOOLS = {
    "metrics": "metrics_list",
    "logs": "logs_search",
    "traces": "traces_compare",
    "changes": "changes_list",
    "events": "events_list",
}
WINDOW = ("--since", "2026-03-03T13:00:00Z", "--until", "2026-03-03T14:30:00Z")
every = pytest.mark.parametrize("kind", KINDS)


def source_at(url: str, kind: str, folder: Path, now: datetime | None = None, **more: object) -> LiveSource:
    clock = FakeClock(now or datetime.fromtimestamp(AT + 1_800, UTC))
    [source] = opened(clock, s={**settings_of(kind, url, folder), **more})
    return source


async def read(source: LiveSource, kind: str) -> Recording:
    return await source.read([BACKENDS[kind].capability], SPAN)


@every
@pytest.mark.parametrize(
    ("manner", "error"),
    [
        ("denied", NotPermittedError),
        ("forbidden", NotPermittedError),
        ("busy", TransientError),
        ("broken", TransientError),
        ("reset", TransientError),
        ("html", UnavailableError),
        ("moved", UnavailableError),
        ("missing", UnavailableError),
        ("strange", UnavailableError),
    ],
)
async def test_each_failure_is_told_apart(
    rude: RudeServer, tmp_path: Path, kind: str, manner: str, error: type[Exception]
) -> None:
    with pytest.raises(error):
        await read(source_at(f"{rude.url}/{manner}", kind, tmp_path), kind)


@every
async def test_nobody_there(tmp_path: Path, kind: str) -> None:
    with pytest.raises(UnavailableError, match="nothing answers"):
        await read(source_at(f"http://127.0.0.1:{free_port()}", kind, tmp_path), kind)


@every
async def test_a_hang_is_cut(rude: RudeServer, tmp_path: Path, kind: str) -> None:
    with pytest.raises(TimeoutError, match="no answer in time"):
        await read(source_at(f"{rude.url}/hang", kind, tmp_path, timeout=0.2), kind)


@every
async def test_fifty_megabytes_are_not_held(rude: RudeServer, tmp_path: Path, kind: str) -> None:
    """Of an answer no more than the limit is ever read."""
    with pytest.raises(UnavailableError, match="larger than 100,000 bytes"):
        await read(source_at(f"{rude.url}/huge", kind, tmp_path, max_bytes=100_000), kind)
    assert await asyncio.to_thread(rude.cut.wait, 30)


@every
async def test_no_data_is_no_error_and_no_word_of_absence(tmp_path: Path, kind: str) -> None:
    with contract_server(BACKENDS[kind].nothing) as server:
        result = await ask([source_at(server.url, kind, tmp_path)], TOOLS[BACKENDS[kind].capability])
    assert result.status is ResultStatus.NOT_RECORDED


@every
async def test_rows_of_the_same_moment_wherever_we_are(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time zone of this machine changes no row."""
    found = {}
    try:
        for zone in ("UTC", "Asia/Shanghai", "America/New_York"):
            monkeypatch.setenv("TZ", zone)
            time.tzset()
            with contract_server(BACKENDS[kind].answering) as server:
                recording = await read(source_at(server.url, kind, tmp_path), kind)
            found[zone] = {field: rows for field in ROWS if (rows := getattr(recording, field)) is not None}
    finally:
        monkeypatch.undo()
        time.tzset()
    assert any(rows for rows in found["UTC"].values())
    assert found["UTC"] == found["Asia/Shanghai"] == found["America/New_York"]


@every
async def test_a_clock_five_minutes_off_is_said(tmp_path: Path, kind: str) -> None:
    ours = datetime.now(UTC) + timedelta(minutes=5)
    with contract_server(BACKENDS[kind].answering) as server:
        source = source_at(server.url, kind, tmp_path, ours)
        await read(source, kind)
    assert "behind ours: its times are shifted" in " ".join(source.warnings)


@pytest.fixture
def program(tmp_path: Path) -> Program:
    (tmp_path / ".config" / "opsleuth").mkdir(parents=True)
    return Program(tmp_path / "db" / "opsleuth.db", tmp_path)


@pytest.mark.slow
def test_a_run_on_nothing_but_failures_ends_well_and_names_them_all(
    program: Program, tmp_path: Path, rude: RudeServer, repository: Path
) -> None:
    """Every kind fails in a way of its own and one source works: that one is used, the others are named."""
    manners = (
        "denied",
        "forbidden",
        "busy",
        "broken",
        "reset",
        "html",
        "moved",
        "missing",
        "strange",
        "huge",
    )
    parts = [f'[environments.shop.sources.good]\nkind = "git"\npath = "{repository}"\n']
    for kind, manner in zip(KINDS, manners, strict=True):
        (tmp_path / kind).mkdir()
        settings = settings_of(kind, f"{rude.url}/{manner}", tmp_path / kind) | {"max_bytes": 1_000_000}
        parts.append(f"[environments.shop.sources.bad-{kind}]\n{as_toml(settings)}\n")
    (tmp_path / ".config" / "opsleuth" / "config.toml").write_text("\n".join(parts))
    ended = program("run", "orders-api is slow: why?", *WINDOW, "--planner", "offline", "--json")
    assert ended.returncode == ExitCode.INCONCLUSIVE, ended.stderr
    report = json.loads(program("report", "-", "--format", "json").stdout)
    missing = " ".join(report["not_available"])
    assert [kind for kind in KINDS if f"bad-{kind}" not in missing] == []
    assert any("good" in row["source"] and row["status"] == "ok" for row in report["evidence"])
