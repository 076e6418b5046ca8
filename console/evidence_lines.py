"""Stored evidence as lines of text, for a terminal that shows it page by page."""

import io

from opsleuth.checkpoints.store import Store
from opsleuth.console import run_tables
from opsleuth.console.screen import Screen


def render_evidence_lines(store: Store, run: str, evidence_id: str, width: int = 100) -> list[str]:
    """One piece of evidence, or the list of all pieces for an empty id. Raises NotFoundError."""
    stream = io.StringIO()
    screen = Screen(stream, width=width)
    if evidence_id:
        row = store.evidence.get(run, evidence_id)
        screen.lines(run_tables.render_evidence_piece(row, store.evidence.record(run, row.id), screen))
    else:
        screen.lines(run_tables.render_evidence_table(store.evidence.list(run), screen))
    return stream.getvalue().splitlines()
