"""`opsleuth worker`: the process that takes runs from the queue and drives them."""

import logging
import signal
import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from opsleuth.console.options import CliCommand, count_option, current_options
from opsleuth.console.output import write_note
from opsleuth.redaction.redactor import Redactor
from opsleuth.state.clock import SystemClock

if TYPE_CHECKING:
    from opsleuth.graph.lifecycle.wiring import AttemptParts
    from opsleuth.service.worker import RunWorker

LOCK_SHARE = 0.4
"""Of the silence after which a worker is considered dead: no waiting for another process's transaction takes longer."""


@click.command("worker", cls=CliCommand)
@count_option("--concurrency", 4, "Runs at once.", most=200)
def work_on_queue(concurrency: int) -> int:
    """Take runs from the queue, on this host and any other. SIGTERM: no new ones, the rest pause at the next node."""
    import asyncio

    from opsleuth.configuration.service_settings import read_service_settings
    from opsleuth.console.run_settings import build_run_parts
    from opsleuth.service.queue import create_queue_tables
    from opsleuth.service.startup import require_server, reveal_secrets
    from opsleuth.service.worker import RunWorker

    options = current_options()
    place, service = require_server(options.database), read_service_settings()
    secrets = reveal_secrets({name: webhook.secret for name, webhook in service.webhooks.items()})
    create_queue_tables(place)
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(levelname)s %(name)s %(message)s")
    logging.getLogger("opsleuth").setLevel(logging.INFO)
    write_note(f"working on up to {concurrency} runs at once; SIGTERM ends this at the next node of each")
    hasty = replace(place, lock_seconds=LOCK_SHARE * service.stalled_seconds)
    parts = cap_runs_of_worker(build_run_parts(options, Redactor()), options.limits)
    worker = RunWorker(hasty, service, SystemClock(), concurrency, parts, secrets=secrets)
    asyncio.run(run_until_signal(worker))
    return 0


def cap_runs_of_worker(parts: "AttemptParts", given: Mapping[str, Any]) -> "AttemptParts":
    """The parts of a worker whose own limits, by flag, variable or file, are caps of every run that it drives."""
    from opsleuth.state.limit_caps import LimitCaps

    caps = LimitCaps.model_validate(given)
    return replace(parts, restrictions=replace(parts.restrictions, caps=caps, always_capped=True))


async def run_until_signal(worker: "RunWorker") -> None:
    """Run the worker; the first SIGTERM or SIGINT lets its runs stop at a node, a second one ends the process."""
    import asyncio

    loop = asyncio.get_running_loop()

    def leave(number: signal.Signals) -> None:
        loop.remove_signal_handler(number)
        worker.leaving.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, leave, number)
    await worker.run()
