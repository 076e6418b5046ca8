"""For those who operate the service: whether it lives, whether it can work, and its figures."""

from decimal import Decimal

from fastapi import APIRouter
from fastapi.responses import PlainTextResponse
from pydantic import BaseModel

from opsleuth import __version__
from opsleuth.checkpoints.store import Store
from opsleuth.configuration.service_settings import ServiceSettings
from opsleuth.service.api_context import Context
from opsleuth.service.authorization import ViewToken
from opsleuth.service.metrics import format_gauge
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
async def metrics(context: Context, token: ViewToken) -> PlainTextResponse:
    """Figures of the whole service, and of the runs of the token's team."""
    lines = await context.stores(lambda store: _format_service_gauges(store, token.team, context.service))
    return PlainTextResponse("\n".join([*lines, *context.traffic.lines()]) + "\n")


def _drop_missing(limit: Decimal | int | None) -> dict[str, float]:
    """The gauge of a limit; no line where there is none."""
    return {} if limit is None else {"": float(limit)}


def _format_service_gauges(store: Store, team: str, service: ServiceSettings) -> list[str]:
    spent, budget = store.spending.read_today(team), service.budget.budget_of(team)
    return [
        *format_gauge(
            "opsleuth_team_cost_today_dollars",
            "US dollars that the team has spent today, UTC.",
            {"": float(spent.cost)},
        ),
        *format_gauge(
            "opsleuth_team_cost_limit_dollars",
            "US dollars that the team may spend on a day.",
            _drop_missing(budget.cost),
        ),
        *format_gauge(
            "opsleuth_team_tokens_today", "Tokens that the team has used today, UTC.", {"": spent.tokens}
        ),
        *format_gauge(
            "opsleuth_team_tokens_limit",
            "Tokens that the team may use on a day.",
            _drop_missing(budget.tokens),
        ),
        *format_gauge(
            "opsleuth_runs", "Stored runs of the team by status.", store.runs.counts(team), "status"
        ),
        *format_gauge("opsleuth_jobs", "Jobs in the queue by state.", store.jobs.counts(), "state"),
        *format_gauge(
            "opsleuth_notices_waiting", "Messages that are not delivered yet.", {"": store.notices.waiting()}
        ),
    ]
