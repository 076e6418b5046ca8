"""A run that goes on, drawn in the same way as its report will be: from what is stored of it so far."""

from collections.abc import Mapping
from typing import Any

from opsleuth.checkpoints.runs import RunRow
from opsleuth.checkpoints.store import Store
from opsleuth.console.html.markup import Html, make_element
from opsleuth.console.html.page import load_report_material, render_page_sections
from opsleuth.console.time_formats import TimeDisplay
from opsleuth.service.task_findings import collect_hypotheses


def render_live_panel(store: Store, row: RunRow, times: TimeDisplay) -> Html:
    """A fragment of HTML; all text in it was made harmless and escaped."""
    document = store.reports.get(row.id) or _build_partial_report(store, row)
    return make_element("div", render_page_sections(load_report_material(store, row.id, document), times))


def _build_partial_report(store: Store, row: RunRow) -> Mapping[str, Any]:
    """The parts of a report that are known before there is one."""
    state = row.settings.get("state", {})
    return {
        "run": row.id,
        "question": row.question,
        "window": state.get("window"),
        "hypotheses": [one.model_dump() for one in collect_hypotheses(store, row.id)],
        "evidence": [
            {"id": piece.id, "tool": piece.tool, "source": piece.source}
            for piece in store.evidence.list(row.id)
        ],
    }
