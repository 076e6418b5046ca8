"""`worker`: the process that drives runs."""

import asyncio
import logging
import signal
import sys
from dataclasses import replace

from opsleuth.checkpoints.redact import Redactor
from opsleuth.console.options import Options
from opsleuth.console.output import note
from opsleuth.console.run_settings import parts
from opsleuth.service.queue import make_queue
from opsleuth.service.serving import revealed, server_of
from opsleuth.service.settings import read_service
from opsleuth.service.worker import Worker
from opsleuth.state.clock import SystemClock

LOCK_SHARE = 0.4
"""Of the silence after which a worker is taken for dead: no waiting for somebody else's transaction takes longer."""


def work(options: Options, concurrency: int) -> int:
    """Work until a signal. Raises ConfigError without PostgreSQL, and for a secret that is not there."""
    place, service = server_of(options.database), read_service()
    secrets = revealed({name: webhook.secret for name, webhook in service.webhooks.items()})
    make_queue(place)
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(levelname)s %(name)s %(message)s")
    logging.getLogger("opsleuth").setLevel(logging.INFO)
    note(f"working on up to {concurrency} runs at once; SIGTERM ends this at the next node of each")
    hasty = replace(place, lock_seconds=LOCK_SHARE * service.stalled_seconds)
    worker = Worker(hasty, service, SystemClock(), concurrency, parts(options, Redactor()), secrets)
    asyncio.run(until_signal(worker))
    return 0


async def until_signal(worker: Worker) -> None:
    """Run the worker; the first SIGTERM or SIGINT lets its runs stop at a node, a second one ends the process."""
    loop = asyncio.get_running_loop()

    def leave(number: signal.Signals) -> None:
        loop.remove_signal_handler(number)
        worker.leaving.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, leave, number)
    await worker.run()
