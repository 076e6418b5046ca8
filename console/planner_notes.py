"""Notes of a person to the planner of a run."""

from opsleuth.checkpoints.store import Store
from opsleuth.graph.approvals.decisions import local_operator


def add_planner_note(store: Store, run: str, text: str) -> None:
    """Store a note that the planner reads at its next turn, and the event that records it."""
    with store.transaction():
        store.control.set(run, "note", text)
        store.events.append(run, "note.added", {"text": text, "by": local_operator("command").name})
