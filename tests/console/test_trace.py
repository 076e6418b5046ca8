"""`trace` and the parts of `log` that look for what stands out."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from stored_runs import Program

from opsleuth.checkpoints.runs import RunRow
from opsleuth.checkpoints.store import Store
from opsleuth.redaction.redactor import Redactor
from opsleuth.state.clock import FakeClock
from opsleuth.state.run_status import Status

RUN = "inv-20261129-trce"


@pytest.fixture
def traced(tmp_path: Path) -> Program:
    """A run of two attempts with three model calls, a question asked three times, and a gap of an hour."""
    program = Program(tmp_path / "opsleuth.db", tmp_path)
    clock = FakeClock(datetime(2026, 11, 29, 14, tzinfo=UTC))
    with Store.open(program.database, clock, Redactor(key="0" * 64)) as store:
        store.runs.create(RunRow(id=RUN, question="why", status=Status.COMPLETED, turn=3, node="end"))
        for attempt in (1, 2):
            _attempt(store, clock, attempt)
            clock.advance(3600)
    return program


def _attempt(store: Store, clock: FakeClock, attempt: int) -> None:
    def told(seconds: float, kind: str, node: str = "", step: int = 0, **data: object) -> None:
        clock.advance(seconds)
        store.events.append(RUN, kind, data, attempt=attempt, turn=attempt, node=node, step=step)

    step = 10 * attempt
    told(0, "run.started" if attempt == 1 else "run.resumed", question="why")
    told(0, "step.started", "plan", step)
    told(
        4,
        "model.completed",
        "plan",
        step,
        model="big",
        usd=f"0.0{attempt}",
        ms=4000,
        **{"in": 900, "out": 40},
    )
    told(0, "decision.made", "plan", step, reason="Symptoms come first.", calls=[], ms=4000)
    told(0, "step.completed", "plan", step, ms=4000)
    told(0, "step.started", "act", step + 1)
    for n in (1, 2):
        call = {
            "id": f"{RUN}/t{attempt}c{n}",
            "tool": "logs_search",
            "args": {"text": "pool", "limit": 100 + n},
        }
        told(0, "tool.started", "act", step + 1, **call)
        told(
            1,
            "tool.completed",
            "act",
            step + 1,
            status="ok",
            evidence=f"E{n}",
            headline="订单 1 line",
            ms=1000,
            **call,
        )
    told(0, "step.completed", "act", step + 1, ms=2000)
    told(
        0, "run.paused" if attempt == 1 else "run.completed", status="paused" if attempt == 1 else "completed"
    )


@pytest.mark.slow
def test_the_waterfall_leaves_the_gap_out(traced: Program) -> None:
    shown = traced("trace", RUN, COLUMNS="90").stdout.splitlines()
    assert shown[0].startswith(f"run {RUN}  trace t-")
    assert "2 attempts" in shown[0]
    assert "12s of active time: models 8.0s, tools 4.0s" in shown
    assert all(len(line) <= 90 for line in shown)
    bars = [(line.index("█"), line.count("█")) for line in shown if "█" in line]
    assert [start for start, _ in bars] == sorted(start for start, _ in bars)
    assert sum("logs_search" in line and "█" in line for line in shown) == 4


def test_the_waterfall_in_words_and_as_json(traced: Program) -> None:
    plain = traced("trace", RUN, "--plain").stdout.splitlines()
    assert "turn 1, model big, began at 0 ms, took 4.0s, 900 in, 40 out  $0.01" in plain
    document = json.loads(traced("trace", RUN, "--json").stdout)
    starts = {
        (s["kind"], s["attempt"]): s["start_ms"]
        for s in document["spans"]
        if s["kind"] in ("model", "attempt")
    }
    assert starts == {("attempt", 1): 0, ("model", 1): 0, ("attempt", 2): 6000, ("model", 2): 6000}
    assert traced("trace", RUN, PYTHONIOENCODING="ascii").returncode == 0


def test_the_slowest_and_the_costliest(traced: Program) -> None:
    slowest = json.loads(traced("log", RUN, "--slowest", "3", "--json").stdout)["events"]
    assert [e["data"]["ms"] for e in slowest] == [4000, 4000, 4000]
    assert {e["type"] for e in slowest} == {"model.completed", "decision.made"}
    costly = json.loads(traced("log", RUN, "--costliest", "1", "--json").stdout)["events"]
    assert [e["data"]["usd"] for e in costly] == ["0.02"]


def test_what_was_asked_again(traced: Program) -> None:
    document = json.loads(traced("log", RUN, "--repeated", "--json").stdout)
    assert [(r["tool"], r["times"], r["drifts"]) for r in document["repeated"]] == [("logs_search", 4, True)]
    assert "other numbers" in traced("log", RUN, "--repeated").stdout


def test_every_event_says_where_and_of_which_trace(traced: Program) -> None:
    events = json.loads(traced("log", RUN, "--json").stdout)["events"]
    wanted = {
        "v",
        "seq",
        "ts",
        "run",
        "trace",
        "attempt",
        "turn",
        "ckpt",
        "step",
        "node",
        "type",
        "data",
        "hash",
    }
    assert all(event.keys() == wanted for event in events)
    assert len({event["trace"] for event in events}) == 1
    assert traced("log", RUN, "--verify").returncode == 0
    assert timedelta(hours=1) < datetime.fromisoformat(events[-1]["ts"]) - datetime.fromisoformat(
        events[0]["ts"]
    )


def test_a_byte_changed_in_the_file_is_found(traced: Program) -> None:
    data = traced.database.read_bytes()
    place = data.index(b"Symptoms come first.")
    traced.database.write_bytes(data[:place] + b"s" + data[place + 1 :])
    found = traced("log", RUN, "--verify")
    assert found.returncode == 11
    assert "was changed" in found.stderr
