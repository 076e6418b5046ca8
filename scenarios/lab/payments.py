"""The payments service of the lab: charges a card in a few milliseconds, unless it is told to be slow or to fail.

python -m opsleuth.scenarios.lab.payments --port N --log FILE

POST /charge   GET /metrics   POST /behave?delay=SECONDS&fails=SHARE
"""

import random
import time
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any

import click

from opsleuth.scenarios.lab.serving import (
    JsonLog,
    LabHttpServer,
    LabRequestError,
    Query,
    RequestMeter,
    serve_until_killed,
)

USUAL_SECONDS = 0.004


@dataclass(slots=True)
class PaymentsBehaviour:
    """How charges go at present: seconds for each, and the share that fails."""

    delay: float = USUAL_SECONDS
    fails: float = 0.0


class PaymentsRoutes:
    """The routes of the service."""

    def __init__(self, log: JsonLog) -> None:
        self._log = log
        self._now = PaymentsBehaviour()
        self._random = random.Random(7)

    def charge(self, query: Query) -> dict[str, Any]:
        now = self._now
        time.sleep(now.delay)
        if self._random.random() < now.fails:
            raise LabRequestError(
                HTTPStatus.INTERNAL_SERVER_ERROR,
                f"unhandled exception while charging order {query.get('order', '?')}: card ledger is read-only",
            )
        if now.delay > 10 * USUAL_SECONDS:
            self._log("WARNING", f"charge was slow: it took {now.delay * 1000:.0f} ms")
        return {"charged": True}

    def behave(self, query: Query) -> dict[str, Any]:
        self._now = PaymentsBehaviour(
            float(query.get("delay", USUAL_SECONDS)), float(query.get("fails", 0.0))
        )
        return {}


@click.command()
@click.option("--port", type=int, required=True)
@click.option("--log", "path", type=click.Path(path_type=Path), required=True)
def main(port: int, path: Path) -> None:
    log = JsonLog(path, "payments")
    payments = PaymentsRoutes(log)
    routes = {"POST /charge": payments.charge, "POST /behave": payments.behave}
    log("INFO", "payments is up")
    serve_until_killed(LabHttpServer(port, routes, RequestMeter(), log))


if __name__ == "__main__":
    main()
