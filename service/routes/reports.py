"""The report of a run in every form, and the panel that the page shows of a run that still goes on."""

import io
from typing import Annotated, Literal

from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response

from opsleuth.checkpoints.errors import NotFound
from opsleuth.checkpoints.store import Store
from opsleuth.console import report
from opsleuth.console.html.page import POLICY, page, stored
from opsleuth.console.screen import Screen
from opsleuth.console.times import Display
from opsleuth.service.context import Context, Viewer, of_team
from opsleuth.service.panel import panel
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
    task_id: TaskId, context: Context, token: Viewer, form: Annotated[Form, Query(alias="format")] = "json"
) -> Response:
    """The report; also the partial one of a run that was stopped. Refuses 404 while there is none."""

    def work(store: Store) -> Response:
        row = of_team(store, task_id, token)
        document = store.reports.get(row.id)
        if document is None:
            raise NotFound(f"{row.id} has no report yet: it is {row.status} in turn {row.turn}")
        if form == "json":
            return JSONResponse(document)
        if form == "html":
            whole = page(stored(store, row.id, document), Display())
            return HTMLResponse(whole, headers={"Content-Security-Policy": POLICY})
        if form == "md":
            return Response(report.markdown(document, Display()), media_type="text/markdown; charset=utf-8")
        stream = io.StringIO()
        screen = Screen(stream)
        screen.lines(report.text(document, screen, full=True))
        return PlainTextResponse(stream.getvalue())

    return await context.stores(work)


_PANEL = {"content": {"text/html": {"schema": {"type": "string"}}}, "description": "A fragment of a page."}


@router.get("/{task_id}/panel", responses={**REFUSALS, 200: _PANEL}, response_class=HTMLResponse)
async def panel_of_run(task_id: TaskId, context: Context, token: Viewer) -> HTMLResponse:
    """What a run has found so far, drawn as the report draws it: conclusion, charts, hypotheses, evidence."""

    def work(store: Store) -> HTMLResponse:
        row = of_team(store, task_id, token)
        return HTMLResponse(panel(store, row, Display()))

    return await context.stores(work)
