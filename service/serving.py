"""`serve`: the process of the API."""

import logging
import sys
from collections.abc import Mapping
from pathlib import Path

import uvicorn

from opsleuth.checkpoints.places import Place, Server
from opsleuth.checkpoints.redact import Redactor
from opsleuth.checkpoints.store import Store
from opsleuth.console.modeling import settings_of
from opsleuth.console.options import Options
from opsleuth.console.reading import note
from opsleuth.console.sourcing import names, no_source, sources
from opsleuth.graph.prepare import Settings
from opsleuth.service.app import build
from opsleuth.service.intake import Desk
from opsleuth.service.office import Office
from opsleuth.service.queue import make_queue
from opsleuth.service.settings import read_service
from opsleuth.service.stores import Stores
from opsleuth.state.clock import SystemClock
from opsleuth.state.errors import ConfigError
from opsleuth.tools.sources.secrets import Secret, Vault
from opsleuth.tools.spec import Unavailable

DRAIN_SECONDS = 5
"""Requests that go on when the process is told to end have so long; event streams are cut then."""
_CLOCK = SystemClock()


def serve(options: Options, host: str, port: int, case: Path | None) -> int:
    """Serve until a signal. Raises ConfigError without sources, without PostgreSQL, for a secret that is not there."""
    settings, service = _of_every_run(options, case), read_service()
    secrets = revealed({name: sender.secret for name, sender in service.senders.items()})
    place = server_of(options.database)
    make_queue(place)
    stores = Stores(lambda: Store.open(place, _CLOCK, Redactor()))
    office = Office(
        stores, Desk(settings, lambda store, taken: store.jobs.put(taken), _CLOCK), service, _CLOCK, secrets
    )
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(levelname)s %(name)s %(message)s")
    config = uvicorn.Config(
        build(office),
        host=host,
        port=port,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=DRAIN_SECONDS,
    )
    note(f"opsleuth answers at http://{host}:{port}; who may ask is told by opsleuth token")
    uvicorn.Server(config).run()
    return 0


def _of_every_run(options: Options, case: Path | None) -> Settings:
    """What runs are given: the operator's word, never the word of who asks."""
    if case is not None:
        return settings_of(options, names(options), case=case)
    found = sources(options)
    if not found.sources:
        raise no_source()
    return settings_of(options, found)


def revealed(secrets: Mapping[str, Secret]) -> dict[str, str]:
    """The secrets, read once at the start. Raises ConfigError for one that is not there."""
    vault = Vault()
    try:
        return {name: vault.reveal(secret) for name, secret in secrets.items()}
    except Unavailable as error:
        raise ConfigError(f"[service]: {error}") from None


def server_of(place: Place) -> Server:
    """The database as a server. Raises ConfigError for a file: many machines cannot share it."""
    if isinstance(place, Server):
        return place
    raise ConfigError(
        f"{place} is a file of this machine: many workers need PostgreSQL, --db postgresql://USER@HOST/DATABASE"
    )
