"""`opsleuth serve`: the process that answers the API."""

import logging
import socket
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from opsleuth.checkpoints.database_urls import PostgresServer
from opsleuth.console.options import CliCommand, GlobalOptions, current_options
from opsleuth.console.output import write_note
from opsleuth.console.store_access import open_store_at
from opsleuth.state.clock import SystemClock
from opsleuth.state.errors import ConfigError

if TYPE_CHECKING:
    from opsleuth.graph.lifecycle.first_state import RunSettings

INTAKE_LANES = 2
"""Teams whose requests are taken in at the same moment, in this process."""
DRAIN_SECONDS = 5
"""How long requests go on after the process is asked to end; event streams are cut then."""


@click.command("serve", cls=CliCommand)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port", type=click.IntRange(0, 65_535), default=8080, show_default=True, help="0: any that is free."
)
@click.option(
    "--case", type=click.Path(path_type=Path, exists=True, file_okay=False), metavar="DIR",
    help="A recorded incident that every run investigates, to try out the service.",
)  # fmt: skip
def serve_api(host: str, port: int, case: Path | None) -> int:
    """Accept investigations over HTTP. The database must be PostgreSQL; workers do the work."""
    import uvicorn

    from opsleuth.configuration.service_settings import read_service_settings
    from opsleuth.service.api_context import ApiContext
    from opsleuth.service.app import build_app
    from opsleuth.service.client_connections import TimedConnection
    from opsleuth.service.intake import RequestIntake
    from opsleuth.service.intake_lanes import IntakeLanes
    from opsleuth.service.queue import create_queue_tables
    from opsleuth.service.startup import require_server, reveal_secrets
    from opsleuth.service.store_pool import StorePool

    options, clock = current_options(), SystemClock()
    settings, service = read_run_settings(options, case), read_service_settings()
    secrets = reveal_secrets(
        {name: sender.secret for name, sender in service.senders.items() if sender.secret is not None}
    )
    place = require_server(options.database)
    with open_listening_socket(host, port) as listening:
        create_queue_tables(place)
        intake = RequestIntake(
            settings, lambda store, taken: store.jobs.put_all(taken), clock, webhooks=service.webhooks
        )
        lanes = IntakeLanes(StorePool(lambda: open_store_at(place), size=INTAKE_LANES))
        context = ApiContext(StorePool(lambda: open_store_at(place)), lanes, intake, service, clock, secrets)
        logging.basicConfig(
            stream=sys.stderr, level=logging.INFO, format="%(levelname)s %(name)s %(message)s"
        )
        config = uvicorn.Config(
            build_app(context),
            http=TimedConnection,
            ws="none",  # no address speaks WebSocket
            log_config=None,
            access_log=False,
            server_header=False,
            **list_proxy_settings(service.proxies),
            timeout_graceful_shutdown=DRAIN_SECONDS,
        )
        write_note(f"opsleuth answers at {format_address(host, listening)}; {describe_access(place)}")
        uvicorn.Server(config).run(sockets=[listening])
    return 0


def read_run_settings(options: GlobalOptions, case: Path | None) -> "RunSettings":
    """What every run is given: the operator decides it, never the person who asks. Raises ConfigError without sources."""
    from opsleuth.console.configured_sources import (
        no_source_error,
        read_allowed_sources,
        read_service_names,
    )
    from opsleuth.console.run_settings import build_run_settings

    if case is not None:
        return cap_run_settings(
            build_run_settings(options, read_service_names(options), case=case), options.limits
        )
    found = read_allowed_sources(options)
    if not found.sources:
        raise no_source_error()
    return cap_run_settings(build_run_settings(options, found), options.limits)


def cap_run_settings(settings: "RunSettings", given: Mapping[str, Any]) -> "RunSettings":
    """The settings with the operator's limits as caps: those given by flag, variable or file, else the defaults."""
    from opsleuth.graph.lifecycle.limit_defaults import default_caps

    return replace(settings, caps=default_caps(settings.planner, settings.model, given).given)


def list_proxy_settings(proxies: Sequence[str]) -> dict[str, Any]:
    """The server's settings under which these proxies alone are believed where a request comes from."""
    return {"proxy_headers": bool(proxies), "forwarded_allow_ips": list(proxies)}


def describe_access(place: PostgresServer) -> str:
    """Who may use the API, and how that is changed."""
    with open_store_at(place) as store:
        if store.tokens.list():
            return "tokens are managed with `opsleuth token`"
    return "no token exists yet: opsleuth token create NAME --team TEAM --role run"


def format_address(host: str, listening: socket.socket) -> str:
    """The address to give to others; its port is one that was free where 0 was asked for."""
    return f"http://{f'[{host}]' if ':' in host else host}:{listening.getsockname()[1]}"


def open_listening_socket(host: str, port: int) -> socket.socket:
    """A socket on this address, before anything else is started. Raises ConfigError where it cannot be had."""
    try:
        family, *_ = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        return socket.create_server((host, port), family=family, backlog=2_048)
    except OSError as error:
        raise ConfigError(
            f"cannot listen on {host} port {port}: {error.strerror or error}; choose another with --host and --port, or end "
            "what listens there"
        ) from None
