"""A run that goes on, drawn in the same way as its report will be: from what is stored of it so far."""

from collections.abc import Mapping
from typing import Any

from opsleuth.checkpoints.runs import RunRow
from opsleuth.checkpoints.store import Store
from opsleuth.console.html.markup import Html, el
from opsleuth.console.html.page import sections_of, stored
from opsleuth.console.times import Display
from opsleuth.service.findings import hypotheses


def panel(store: Store, row: RunRow, times: Display) -> Html:
    """A fragment of HTML; all text in it was made harmless and escaped."""
    document = store.reports.get(row.id) or _so_far(store, row)
    return el("div", sections_of(stored(store, row.id, document), times))


def _so_far(store: Store, row: RunRow) -> Mapping[str, Any]:
    """The parts of a report that are known before there is one."""
    state = row.settings.get("state", {})
    return {
        "run": row.id,
        "question": row.question,
        "window": state.get("window"),
        "hypotheses": [one.model_dump() for one in hypotheses(store, row.id)],
        "evidence": [
            {"id": piece.id, "tool": piece.tool, "source": piece.source}
            for piece in store.evidence.list(row.id)
        ],
    }
