"""The report of a run in every form, and the panel that the page shows of a run that still goes on."""

import io
from typing import Annotated, Literal

from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response

from opsleuth.checkpoints.errors import NotFoundError
from opsleuth.checkpoints.store import Store
from opsleuth.console import report_text
from opsleuth.console.html.page import POLICY, load_report_material, render_report_page
from opsleuth.console.screen import Screen
from opsleuth.console.time_formats import TimeDisplay
from opsleuth.service.api_context import Context
from opsleuth.service.authorization import ViewToken, find_team_run
from opsleuth.service.live_panel import render_live_panel
from opsleuth.service.routes.tasks import REFUSALS, TaskId

router = APIRouter(prefix="/api/tasks", tags=["reports"])
Form = Literal["json", "md", "text", "html"]
_FORMS = {
    "description": "The report.",
    "content": {
        "application/json": {"schema": {"type": "object"}},
        "text/markdown": {"schema": {"type": "string"}},
        "text/plain": {"schema": {"type": "string"}},
        "text/html": {"schema": {"type": "string"}},
    },
}


@router.get("/{task_id}/report", responses={**REFUSALS, 200: _FORMS}, response_class=Response)
async def of_run(
    task_id: TaskId, context: Context, token: ViewToken, form: Annotated[Form, Query(alias="format")] = "json"
) -> Response:
    """The report; also the partial one of a run that was stopped. Refuses 404 while there is none."""

    def work(store: Store) -> Response:
        row = find_team_run(store, task_id, token)
        document = store.reports.get(row.id)
        if document is None:
            raise NotFoundError(f"{row.id} has no report yet: it is {row.status} in turn {row.turn}")
        if form == "json":
            return JSONResponse(document)
        if form == "html":
            whole = render_report_page(load_report_material(store, row.id, document), TimeDisplay())
            return HTMLResponse(whole, headers={"Content-Security-Policy": POLICY})
        if form == "md":
            return Response(
                report_text.format_report_markdown(document, TimeDisplay()),
                media_type="text/markdown; charset=utf-8",
            )
        stream = io.StringIO()
        screen = Screen(stream)
        screen.lines(report_text.format_report_lines(document, screen, full=True))
        return PlainTextResponse(stream.getvalue())

    return await context.stores(work)


_PANEL = {"content": {"text/html": {"schema": {"type": "string"}}}, "description": "A fragment of a page."}


@router.get("/{task_id}/panel", responses={**REFUSALS, 200: _PANEL}, response_class=HTMLResponse)
async def panel_of_run(task_id: TaskId, context: Context, token: ViewToken) -> HTMLResponse:
    """What a run has found so far, drawn as the report draws it: conclusion, charts, hypotheses, evidence."""

    def work(store: Store) -> HTMLResponse:
        row = find_team_run(store, task_id, token)
        return HTMLResponse(render_live_panel(store, row, TimeDisplay()))

    return await context.stores(work)
