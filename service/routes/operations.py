"""For those who operate the service: whether it lives, whether it can work, and its figures."""

from fastapi import APIRouter
from fastapi.responses import PlainTextResponse
from pydantic import BaseModel

from opsleuth import __version__
from opsleuth.checkpoints.store import Store
from opsleuth.service.context import Context, Viewer
from opsleuth.service.metrics import gauge
from opsleuth.service.routes.tasks import REFUSALS

router = APIRouter(tags=["operations"])
_TEXT = {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "Prometheus' text format."}


class Health(BaseModel):
    """It answers."""

    status: str = "ok"
    version: str = __version__


@router.get("/healthz")
async def alive() -> Health:
    """Whether this process answers."""
    return Health()


@router.get("/readyz", responses=REFUSALS)
async def ready(context: Context) -> Health:
    """Whether the database answers too. Refuses 503 while it does not."""
    await context.stores(lambda store: store.notices.waiting())
    return Health()


@router.get("/metrics", responses={**REFUSALS, 200: _TEXT}, response_class=PlainTextResponse)
async def metrics(context: Context, token: Viewer) -> PlainTextResponse:
    """Figures of the whole service, and of the runs of the token's team."""
    lines = await context.stores(lambda store: _lines(store, token.team))
    return PlainTextResponse("\n".join([*lines, *context.traffic.lines()]) + "\n")


def _lines(store: Store, team: str) -> list[str]:
    return [
        *gauge("opsleuth_runs", "Stored runs of the team by status.", store.runs.counts(team), "status"),
        *gauge("opsleuth_jobs", "Jobs in the queue by state.", store.jobs.counts(), "state"),
        *gauge(
            "opsleuth_notices_waiting", "Messages that are not delivered yet.", {"": store.notices.waiting()}
        ),
    ]
