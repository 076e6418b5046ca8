"""The live view: one status line that never mixes with the lines, a sign of life where there is none, and pipes."""

import io
import json
import re
import signal
from typing import Any

import pytest

from opsleuth.console.live_view import HEARTBEAT, LiveView, RunProgress
from opsleuth.console.screen import Screen

Trace = list[dict[str, Any]]


class Clock:
    """Seconds that stand still until they are moved."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Terminal:
    """A terminal of one cursor line: what stands on the screen after everything that was written."""

    def __init__(self, written: str) -> None:
        self.lines, line = [], ""
        for piece in re.split(r"(\r\x1b\[K|\n)", written):
            if piece == "\n":
                self.lines.append(line)
                line = ""
            elif piece == "\r\x1b[K":
                line = ""
            else:
                line += piece
        self.cursor_line = line


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_the_status_line_is_erased_before_every_other_line(case_trace: Trace, clock: Clock) -> None:
    both = io.StringIO()
    live = LiveView(Screen(both, width=80), Screen(both, width=80, live=True), clock=clock)
    for event in case_trace:
        live(event)
        live.tick()
        clock.now += 1
    live.__exit__(None, None, None)
    terminal = Terminal(both.getvalue())
    assert terminal.cursor_line == ""
    assert not any("evidence 0" in line or "turn 1/30" in line for line in terminal.lines)
    assert len(terminal.lines) == len(
        [e for e in case_trace if e["type"] not in ("tool.started", "step.completed")]
    )


def test_the_status_line_tells_what_runs_and_for_how_long(case_trace: Trace, clock: Clock) -> None:
    status = io.StringIO()
    live = LiveView(Screen(io.StringIO()), Screen(status, width=80, live=True), clock=clock)
    for event in case_trace[:4]:
        live(event)
    clock.now += 12
    live.tick()
    assert Terminal(status.getvalue()).cursor_line == "turn 1/30   act metrics_query 12s   evidence 0"
    live(case_trace[4])
    live.tick()
    assert Terminal(status.getvalue()).cursor_line == "turn 1/30   act   evidence 1"


def test_silence_off_a_terminal_is_broken_by_a_sign_of_life(case_trace: Trace, clock: Clock) -> None:
    status = io.StringIO()
    live = LiveView(Screen(io.StringIO()), Screen(status), clock=clock)
    for event in case_trace[:4]:
        live(event)
    live.tick()
    assert status.getvalue() == ""
    clock.now += HEARTBEAT
    live.tick()
    live.tick()
    assert status.getvalue() == "still at it: turn 1/30   act metrics_query 30s   evidence 0\n"


def test_the_json_stream_is_the_stored_trace(case_trace: Trace) -> None:
    out = io.StringIO()
    live = LiveView(Screen(out), json=True)
    for event in case_trace:
        live(event)
    assert [json.loads(line) for line in out.getvalue().splitlines()] == case_trace


def test_quiet_says_nothing(case_trace: Trace) -> None:
    out = io.StringIO()
    with LiveView(Screen(out), quiet=True) as live:
        live(case_trace[0])
    assert out.getvalue() == ""


class Closed(io.StringIO):
    """A pipe that nobody reads any more."""

    def flush(self) -> None:
        raise BrokenPipeError


def test_a_reader_that_went_away_stops_the_run_as_ctrl_c_does(case_trace: Trace) -> None:
    heard: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: heard.append(number))
    try:
        live = LiveView(Screen(Closed()))
        live(case_trace[0])
        live(case_trace[1])
    finally:
        signal.signal(signal.SIGINT, before)
    assert live.broken
    assert heard == [signal.SIGINT]


def test_the_status_line_tells_cost_and_what_is_ruled_out() -> None:
    standing = RunProgress()
    told: list[tuple[str, dict[str, Any]]] = [
        ("run.started", {"limits": {"turns": 30, "cost": "1.00"}}),
        ("model.completed", {"usd": "0.031"}),
        ("model.completed", {"usd": "0.012"}),
        ("hypothesis.updated", {"id": "H1", "status": "refuted"}),
        ("hypothesis.updated", {"id": "H2", "status": "refuted"}),
        ("hypothesis.updated", {"id": "H2", "status": "open"}),
        ("tool.started", {"id": "x", "tool": "logs_search"}),
    ]
    for kind, data in told:
        standing.take({"type": kind, "turn": 2, "node": "act", "data": data}, 0.0)
    assert (
        standing.line(12.0) == "turn 2/30   act logs_search 12s   cost $0.04/1.00   evidence 0   1 ruled out"
    )


def take_all(told: list[tuple[str, str, float, dict[str, Any]]]) -> RunProgress:
    standing = RunProgress()
    for kind, node, now, data in told:
        standing.take({"type": kind, "turn": 3, "node": node, "data": data}, now)
    return standing


@pytest.mark.parametrize(
    ("model", "node", "seconds", "doing"),
    [
        ("gpt-4o-mini", "plan", 23.4, "waiting for gpt-4o-mini, 23 s · Ctrl-C stops"),
        ("gpt-4o-mini", "verify", 2.0, "waiting for gpt-4o-mini, 2 s · Ctrl-C stops"),
        ("gpt-4o-mini", "plan", 0.4, "plan"),
        ("gpt-4o-mini", "observe", 23.4, "waiting for gpt-4o-mini, 23 s · Ctrl-C stops"),
        ("offline", "plan", 23.4, "plan"),
    ],
)
def test_for_how_long_a_model_is_waited_for(model: str, node: str, seconds: float, doing: str) -> None:
    told = [
        ("run.started", "", 0.0, {"limits": {"turns": 30}, "versions": {"model": model}}),
        ("step.completed", "observe", 90.0, {}),
        ("step.started", node, 100.0, {}),
    ]
    assert take_all(told).line(100.0 + seconds) == f"turn 3/30   {doing}   evidence 0"


def test_a_run_that_is_resumed_keeps_its_figures() -> None:
    told: list[tuple[str, str, float, dict[str, Any]]] = [
        ("run.resumed", "", 0.0, {"limits": {"turns": 30}, "cost": "0.31", "versions": {"model": "m"}}),
        ("tool.started", "act", 1.0, {"id": "x", "tool": "topology"}),
        ("tool.completed", "act", 2.0, {"id": "x", "tool": "topology", "evidence": "E12"}),
        ("model.completed", "plan", 3.0, {"usd": "0.02"}),
    ]
    assert take_all(told).line(3.5) == "turn 3/30   plan   cost $0.33   evidence 12"


def test_the_check_of_a_change_is_no_wait_for_a_model() -> None:
    told: list[tuple[str, str, float, dict[str, Any]]] = [
        ("run.started", "", 0.0, {"limits": {"turns": 30}, "versions": {"model": "m"}}),
        ("tool.started", "act", 1.0, {"id": "x", "tool": "service_rollback", "risk": "high"}),
        ("tool.completed", "act", 2.0, {"id": "x", "tool": "service_rollback", "evidence": "E1"}),
    ]
    assert "waiting for" not in take_all(told).line(30.0)
    told.append(("effect.checked", "verify", 31.0, {"id": "x", "passed": True}))
    assert "waiting for m, 9 s" in take_all(told).line(40.0)
