"""Numbers inside log lines are series for the tools that read metrics, where nothing but logs is there."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from live_rig import ask, one

from opsleuth.state.calls import ResultStatus
from opsleuth.tools.sources.source_protocols import Source

START = datetime(2026, 3, 3, 14, 0, tzinfo=UTC)


@pytest.fixture
def logs(tmp_path: Path) -> list[Source]:
    """Ten minutes of a service whose statements slow down after five, among lines whose numbers measure nothing."""
    with (tmp_path / "tills.log").open("w") as file:
        for second in range(600):
            stamp = f"{START + timedelta(seconds=second):%Y-%m-%dT%H:%M:%SZ}"
            slow = 2_000 if second >= 300 else 20
            file.write(
                f"{stamp} INFO receipt {second} printed in {slow + second % 7} ms, queue depth={second % 5}\n"
            )
            file.write(f"{stamp} INFO listening on port 8080\n")
    return [one(kind="logfiles", files=[str(tmp_path / "*.log")])]


def names_in(groups: list[dict[str, Any]]) -> set[str]:
    return {name for group in groups for name in group["metrics"]}


async def test_a_list_names_the_numbers_by_their_statement(logs: list[Source]) -> None:
    found = await ask(logs, "metrics_list")
    names = names_in(found.record["numbers_in_log_lines"])
    assert 'maximum printed of "INFO receipt <n> printed in <n> ms, queue depth=<n>" [ms]' in names
    assert any(name.startswith("median depth of") for name in names)
    assert not any("port" in name for name in names)
    assert found.source == "s"


async def test_a_query_gives_the_samples_of_one(logs: list[Source]) -> None:
    found = await ask(logs, "metrics_list", contains="maximum printed")
    (name,) = names_in(found.record["numbers_in_log_lines"])
    metric = name.removesuffix(" [ms]")
    series = await ask(
        logs,
        "metrics_query",
        service="tills",
        metric=metric,
        since="2026-03-03T14:00:00Z",
        until="2026-03-03T14:10:00Z",
    )
    assert series.status is ResultStatus.OK
    assert (series.record["unit"], series.record["max"]["value"]) == ("ms", 2_006)
    assert series.record["change_point"].startswith("2026-03-03T14:05")


async def test_a_query_for_a_number_that_no_line_holds_names_those_there_are(logs: list[Source]) -> None:
    found = await ask(
        logs,
        "metrics_query",
        service="tills",
        metric="weight",
        since="2026-03-03T14:00:00Z",
        until="2026-03-03T14:10:00Z",
    )
    assert found.status is ResultStatus.NOT_RECORDED
    assert any("printed in" in name for name in found.record["nearest"])


async def test_what_rose_is_found_without_any_metrics(logs: list[Source]) -> None:
    found = await ask(logs, "metrics_anomalies", service="tills")
    assert found.record["scanned_series"] >= 4


async def test_a_service_whose_lines_hold_no_numbers_has_no_metrics(tmp_path: Path) -> None:
    (tmp_path / "tills.log").write_text("2026-03-03T14:00:00Z INFO opened\n2026-03-03T14:00:01Z INFO shut\n")
    found = await ask([one(kind="logfiles", files=[str(tmp_path / "*.log")])], "metrics_list")
    assert found.status is ResultStatus.NOT_RECORDED
