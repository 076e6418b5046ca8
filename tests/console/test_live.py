"""The live view: one status line that never mixes with the lines, a sign of life where there is none, and pipes."""

import io
import json
import re
import signal
from typing import Any

import pytest

from opsleuth.console.live import HEARTBEAT, Live, Standing
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
    live = Live(Screen(both, width=80), Screen(both, width=80, live=True), clock=clock)
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
    live = Live(Screen(io.StringIO()), Screen(status, width=80, live=True), clock=clock)
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
    live = Live(Screen(io.StringIO()), Screen(status), clock=clock)
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
    live = Live(Screen(out), json=True)
    for event in case_trace:
        live(event)
    assert [json.loads(line) for line in out.getvalue().splitlines()] == case_trace


def test_quiet_says_nothing(case_trace: Trace) -> None:
    out = io.StringIO()
    with Live(Screen(out), quiet=True) as live:
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
        live = Live(Screen(Closed()))
        live(case_trace[0])
        live(case_trace[1])
    finally:
        signal.signal(signal.SIGINT, before)
    assert live.broken
    assert heard == [signal.SIGINT]


def test_the_status_line_tells_cost_and_what_is_ruled_out() -> None:
    standing = Standing()
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
