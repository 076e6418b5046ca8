"""A small control plane for cases that make changes, served on loopback by this process."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any

from opsleuth.checkpoints.approvals import Approval
from opsleuth.evals.cases import EvalCase
from opsleuth.graph.approvals.decisions import ApprovalPrompt, OperatorReply
from opsleuth.scenarios.control_plane import build_plane_server
from opsleuth.scenarios.plane.web import PlaneServer


@dataclass(frozen=True, slots=True)
class CaseControlPlane:
    """What a run needs to act: settings and a person; and what was really done, for whoever counts."""

    settings: Mapping[str, Any] | None = None
    asker: ApprovalPrompt | None = None
    twice: Callable[[], int] = lambda: 0


@contextmanager
def serve_control_plane(case: EvalCase, folder: Path) -> Iterator[CaseControlPlane]:
    """The system of a case that has one, with its switches set; nothing for the others."""
    if case.plane is None:
        yield CaseControlPlane()
        return
    server = build_plane_server(folder / "plane.jsonl")
    for switch in case.plane:
        values = dict(switch)
        server.engine.switches.set(values.pop("operation"), values)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        url = f"http://127.0.0.1:{server.server_port}"
        yield CaseControlPlane(
            {"url": url, "keys": True}, _approve_everything, lambda: _count_repeated_changes(server)
        )
    finally:
        server.shutdown()
        thread.join()
        server.stop()


def _approve_everything(question: Approval, current: Callable[[], Approval]) -> OperatorReply:  # noqa: ARG001 - as an asker is asked
    """A person who says yes to everything: what must not happen twice has to be kept from it by the program."""
    return OperatorReply("approved")


def _count_repeated_changes(server: PlaneServer) -> int:
    done = Counter(
        (a.operation, a.target, str(sorted(a.arguments.items()))) for a in server.engine.world.applications
    )
    return sum(count - 1 for count in done.values())
