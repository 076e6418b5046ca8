"""Golden screens: what a run looks like at 80 and 120 columns, spoken, without colour, and in older consoles."""

import io
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from stored_runs import HOSTILE, STOPPED

from opsleuth.checkpoints.store import Store
from opsleuth.console import event_lines, report_text, run_tables
from opsleuth.console import terminal_text as texts
from opsleuth.console.screen import Screen
from opsleuth.console.time_formats import TimeDisplay, find_time_zone

Golden = Callable[[str, str], None]
SCREENS: dict[str, dict[str, Any]] = {
    "80": {"width": 80},
    "120": {"width": 120},
    "pipe": {},
    "plain": {"plain": True},
    "color": {"width": 100, "color": True},
    "ascii": {"width": 80, "encoding": "ascii"},
    "cp1252": {"width": 80, "encoding": "cp1252"},
}


def drawn(draw: Callable[[Screen], Any], **how: Any) -> str:
    stream = io.StringIO()
    screen = Screen(stream, **how)
    screen.lines(draw(screen))
    shown = stream.getvalue()
    shown.encode(screen.encoding)
    return shown


@pytest.fixture(params=SCREENS)
def form(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_live_lines(form: str, case_trace: list[event_lines.Event], golden: Golden) -> None:
    shown = [event for event in case_trace if event_lines.is_shown_live(event)]
    golden(
        f"live-{form}",
        drawn(
            lambda screen: [event_lines.format_event_line(event, screen) for event in shown], **SCREENS[form]
        ),
    )


def test_log(form: str, case_trace: list[event_lines.Event], golden: Golden) -> None:
    golden(
        f"log-{form}", drawn(lambda screen: run_tables.render_log_lines(case_trace, screen), **SCREENS[form])
    )


def test_report(form: str, document: dict[str, Any], golden: Golden) -> None:
    golden(
        f"report-{form}",
        drawn(lambda screen: report_text.format_report_lines(document, screen), **SCREENS[form]),
    )


def test_whole_report(document: dict[str, Any], golden: Golden) -> None:
    golden(
        "report-full",
        drawn(lambda screen: report_text.format_report_lines(document, screen, full=True), width=100),
    )


def test_report_as_markdown(document: dict[str, Any], golden: Golden) -> None:
    golden(
        "report-md", report_text.format_report_markdown(document, TimeDisplay(find_time_zone("Asia/Tokyo")))
    )


@pytest.mark.parametrize("width", [20, 40, 80, 120])
def test_no_line_is_wider_than_the_screen(
    width: int, case_trace: list[event_lines.Event], document: dict[str, Any]
) -> None:
    for draw in (
        lambda screen: [event_lines.format_event_line(event, screen) for event in case_trace],
        lambda screen: run_tables.render_log_lines(case_trace, screen),
        lambda screen: report_text.format_report_lines(document, screen),
    ):
        shown = drawn(draw, width=width)
        assert max(map(texts.measure_width, shown.splitlines())) <= width


def test_the_short_report_has_one_screen(document: dict[str, Any]) -> None:
    long = document | {
        "answer": document["answer"] * 20,
        "recommendations": document["recommendations"] * 9,
        "timeline": document["timeline"] * 30,
        "not_available": [f"source {i} is down" for i in range(30)],
    }
    remedies = len(long["recommendations"])
    for width in (80, 120):
        shown = drawn(lambda screen: report_text.format_report_lines(long, screen), width=width)
        assert len(shown.splitlines()) <= report_text.SHORT + remedies
        assert shown.count("Roll orders-api back to 2.13.4") == remedies // 2 + 1, "no remedy is left out"
        assert "--full" in shown


def test_a_partial_report_says_what_stopped_it_and_how_to_go_on() -> None:
    partial = {
        "run": "inv-20261129-7k3f",
        "status": "completed",
        "stop_reason": "turn_limit",
        "usage": {"turns": 30},
    }
    shown = drawn(lambda screen: report_text.format_report_lines(partial, screen), width=80)
    assert "turn limit" in shown
    assert "opsleuth resume inv-20261129-7k3f" in " ".join(shown.split())
    assert "No conclusion" in shown


def test_data_cannot_make_markup() -> None:
    document = {
        "answer": f"# {HOSTILE} <script> **x** `y` | z\n1. item\n- item",
        "verdict": "answered",
        "run": "r",
    }
    shown = report_text.format_report_markdown(document, TimeDisplay())
    assert "<script>" not in shown.replace("\\<", "")
    assert "\x1b" not in shown
    assert "\n1\\. item" in shown
    assert "\n\\- item" in shown


@pytest.mark.parametrize("tree", [False, True], ids=["flat", "tree"])
def test_list(form: str, tree: bool, stored: Store, golden: Golden) -> None:
    now = datetime(2026, 11, 29, 14, 30, tzinfo=UTC)
    rows = stored.runs.list()
    drawing = drawn(
        lambda screen: run_tables.render_runs_table(rows, screen, now, tree=tree), **SCREENS[form]
    )
    golden(f"list-{'tree-' if tree else ''}{form}", drawing)


def test_show(form: str, stored: Store, golden: Golden) -> None:
    shown = run_tables.RunOverview(
        run=stored.runs.find(STOPPED),
        report=None,
        course=stored.events.read(STOPPED),
        left_out=3,
        pending=["A1"],
    )
    golden(
        f"show-{form}", drawn(lambda screen: run_tables.render_run_overview(shown, screen), **SCREENS[form])
    )


def test_evidence(form: str, stored: Store, golden: Golden) -> None:
    (row,) = stored.evidence.list(STOPPED)
    record = stored.evidence.record(STOPPED, row.id)
    golden(
        f"evidence-{form}",
        drawn(lambda screen: run_tables.render_evidence_piece(row, record, screen), **SCREENS[form]),
    )
