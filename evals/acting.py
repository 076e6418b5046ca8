"""A small system to act on, for cases that try what the program does: served on loopback, by this process."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any

from opsleuth.checkpoints.approvals import Approval
from opsleuth.evals.cases import Case
from opsleuth.graph.decisions import Asker, Reply
from opsleuth.scenarios.control_plane import build
from opsleuth.scenarios.plane.web import PlaneServer


@dataclass(frozen=True, slots=True)
class Plane:
    """What a run needs to act: settings and a person; and what was really done, for whoever counts."""

    settings: Mapping[str, Any] | None = None
    asker: Asker | None = None
    twice: Callable[[], int] = lambda: 0


@contextmanager
def acting(case: Case, folder: Path) -> Iterator[Plane]:
    """The system of a case that has one, with its switches set; nothing for the others."""
    if case.plane is None:
        yield Plane()
        return
    server = build(folder / "plane.jsonl")
    for switch in case.plane:
        values = dict(switch)
        server.engine.switches.set(values.pop("operation"), values)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        url = f"http://127.0.0.1:{server.server_port}"
        yield Plane({"url": url, "keys": True}, _approves, lambda: _twice(server))
    finally:
        server.shutdown()
        thread.join()
        server.stop()


def _approves(question: Approval, current: Callable[[], Approval]) -> Reply:  # noqa: ARG001 - as an asker is asked
    """A person who says yes to everything: what must not happen twice has to be kept from it by the program."""
    return Reply("approved")


def _twice(server: PlaneServer) -> int:
    done = Counter(
        (a.operation, a.target, str(sorted(a.arguments.items()))) for a in server.engine.world.applications
    )
    return sum(count - 1 for count in done.values())
