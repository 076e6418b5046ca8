"""When the trace says that something happened."""

from datetime import UTC, datetime
from pathlib import Path

from opsleuth.checkpoints.store import Store
from opsleuth.nodes.trace import TracePosition, TraceWriter
from opsleuth.redaction.redactor import Redactor
from opsleuth.state.clock import FakeClock, format_timestamp


def test_a_node_begins_when_it_begins(tmp_path: Path) -> None:
    """Not when the event is stored with which its own waited."""
    clock = FakeClock(datetime(2026, 11, 29, 14, tzinfo=UTC))
    began = format_timestamp(clock.now())
    with Store.open(tmp_path / "opsleuth.db", clock, Redactor()) as store:
        trace = TraceWriter(store, "inv-20261129-7k3f", 1, lambda _: None)
        trace.enter(TracePosition(turn=1, node="plan", step=1))
        trace.later("step.started")
        clock.advance(4)
        trace.emit("decision.made")
        started, decided = store.events.read("inv-20261129-7k3f")
    assert (started["ts"], started["node"]) == (began, "plan")
    assert decided["ts"] == format_timestamp(clock.now()) > began
