"""`serve`: the process of the API."""

import logging
import socket
import sys
from collections.abc import Mapping
from pathlib import Path

import uvicorn

from opsleuth.checkpoints.places import Place, Server
from opsleuth.checkpoints.redact import Redactor
from opsleuth.checkpoints.store import Store
from opsleuth.console.configured_sources import names, no_source, sources
from opsleuth.console.options import Options
from opsleuth.console.output import note
from opsleuth.console.run_settings import settings_of
from opsleuth.graph.prepare import Settings
from opsleuth.service.app import build
from opsleuth.service.context import ApiContext
from opsleuth.service.intake import Intake
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
    with listen(host, port) as listening:
        make_queue(place)
        stores = Stores(lambda: Store.open(place, _CLOCK, Redactor()))
        context = ApiContext(
            stores,
            Intake(settings, lambda store, taken: store.jobs.put(taken), _CLOCK),
            service,
            _CLOCK,
            secrets,
        )
        logging.basicConfig(
            stream=sys.stderr, level=logging.INFO, format="%(levelname)s %(name)s %(message)s"
        )
        config = uvicorn.Config(
            build(context),
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=DRAIN_SECONDS,
        )
        note(f"opsleuth answers at {address_of(host, listening)}; {_who_may_ask(place)}")
        uvicorn.Server(config).run(sockets=[listening])
    return 0


def _who_may_ask(place: Server) -> str:
    with Store.open(place, _CLOCK, Redactor()) as store:
        if store.tokens.list():
            return "tokens are managed with `opsleuth token`"
    return "nobody may ask yet: opsleuth token create NAME --team TEAM --role run"


def address_of(host: str, listening: socket.socket) -> str:
    """The address to give to others; its port is one that was free where 0 was asked for."""
    return f"http://{f'[{host}]' if ':' in host else host}:{listening.getsockname()[1]}"


def listen(host: str, port: int) -> socket.socket:
    """A socket on this address, before anything else is begun. Raises ConfigError where it cannot be had."""
    try:
        family, *_ = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        return socket.create_server((host, port), family=family, backlog=2_048)
    except OSError as error:
        raise ConfigError(
            f"cannot listen on {host} port {port}: {error.strerror or error}; choose another with --host and --port, or end "
            "what listens there"
        ) from None


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
