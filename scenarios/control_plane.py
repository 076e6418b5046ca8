"""A small system to act on, as a process of its own on loopback HTTP.

    python -m opsleuth.scenarios.control_plane --port 0 --state FILE

prints its port on the first line. FILE is the append-only record of what was really done; a control plane
started again on the same file goes on where it was. It holds the shop of the built-in incident: release 2.14.0
of orders-api made it slow, and a rollback to 2.13.4 makes it well again.

    GET  /state  /services/NAME (with ETag)  /metrics  /logs  /statements  /changes  /topology
    POST /operations/restart|rollback|scale|flag|delete|message|refund   {"target": …, "arguments": {…}}
    GET  /applied/OPERATION?target=&key=       what a client may look up of what was applied
    GET  /switches, POST /switches             {"operation": "rollback", "mode": "drop", "times": 1}
    GET  /ledger                               every real application: for whoever counts, not for clients

Reads of signals take `from`, `to` (RFC 3339) and `step` (seconds). Operations take `Idempotency-Key` and, on
services, `If-Match` with the revision. Arguments: rollback `version?`, scale `replicas`, flag `flag` and `on`,
message `text` (the target is a channel), refund `amount_cents` (the target is an order). How it can misbehave
stands in `plane/switches.py`.
"""

import json
import signal
import sys
import time
from pathlib import Path
from threading import Thread, Timer
from types import FrameType

import click

from opsleuth.scenarios.plane.engine import PlaneEngine
from opsleuth.scenarios.plane.ledger import PlaneLedger
from opsleuth.scenarios.plane.state import OPERATIONS, PlaneWorld
from opsleuth.scenarios.plane.switches import FaultSwitches, InvalidSwitchError
from opsleuth.scenarios.plane.web import PlaneServer


def build_plane_server(state: Path, port: int = 0) -> PlaneServer:
    """A control plane on `port` (0: any free one) that goes on from the file `state`; not yet serving."""
    world = PlaneWorld(PlaneLedger(state, time.time()))
    return PlaneServer(port, PlaneEngine(world, FaultSwitches(frozenset(OPERATIONS))))


@click.command()
@click.option(
    "--port", default=0, show_default=True, type=click.IntRange(0, 65535), help="0 takes any free port."
)
@click.option(
    "--state",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="The record to go on from.",
)
@click.option("--lifetime", type=float, help="Seconds after which it ends by itself.")
@click.option(
    "--switch", "switches", multiple=True, help='One as JSON: {"operation": "refund", "mode": "drop"}.'
)
def main(port: int, state: Path, lifetime: float | None, switches: tuple[str, ...]) -> None:
    """Serve until SIGTERM or SIGINT."""
    server = build_plane_server(state, port)
    try:
        for text in switches:
            values = json.loads(text)
            server.engine.switches.set(values.pop("operation", "*"), values)
    except (InvalidSwitchError, json.JSONDecodeError) as error:
        raise click.BadParameter(str(error), param_hint="--switch") from None

    def stop(_signal: int, _frame: FrameType | None) -> None:
        # shutdown() waits for the serving loop, which is this thread: it must be called from another.
        Thread(target=server.shutdown, daemon=True).start()

    if lifetime is not None:
        timer = Timer(lifetime, server.shutdown)
        timer.daemon = True
        timer.start()
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    sys.stdout.write(f"{server.server_port}\n")
    sys.stdout.flush()
    server.serve_forever(poll_interval=0.05)
    server.stop()


if __name__ == "__main__":
    main()
