"""The keeper's HTTP server, without the lab's processes."""

from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any, cast

import httpx
import pytest

from opsleuth.console.source_checks import check_platform
from opsleuth.scenarios.lab.keeper import KeeperServer
from opsleuth.scenarios.lab.shop import LabShop
from opsleuth.scenarios.lab.world import LabWorld
from opsleuth.scenarios.plane.engine import PlaneEngine
from opsleuth.scenarios.plane.ledger import PlaneLedger
from opsleuth.scenarios.plane.state import OPERATIONS
from opsleuth.scenarios.plane.switches import FaultSwitches
from opsleuth.tools.effects.control_plane import ControlPlane
from opsleuth.tools.spec import TransientError


class Monitoring(SimpleNamespace):
    """The parts of a shop that the world reads."""

    version = "2.13.1"
    failure: Exception | None = None

    def wrong(self) -> list[str]:
        if self.failure is not None:
            raise self.failure
        return []


@pytest.fixture
def shop() -> Monitoring:
    return Monitoring()


@pytest.fixture
def url(tmp_path: Path, shop: Monitoring) -> Iterator[str]:
    world = LabWorld(PlaneLedger(tmp_path / "done.jsonl", 1_772_000_000.0), cast("LabShop", shop))
    world.begin()
    server = KeeperServer(PlaneEngine(world, FaultSwitches(frozenset(OPERATIONS))))
    thread = Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.stop()


async def fetch(url: str) -> httpx.Response:
    async with httpx.AsyncClient() as client:
        return await client.get(url)


async def test_doctor_reads_every_service_of_the_lab(url: str) -> None:
    checked = await check_platform({"url": url, "name": "lab"}, ("orders-api", "payments"))
    assert [(check.what, check.state) for check in checked.checks] == [("reached", "ok")]


async def test_the_lab_serves_no_made_up_signals(url: str) -> None:
    service = await ControlPlane(url).service("orders-api")
    assert service is not None
    assert not service.measures
    for path in ("metrics", "logs", "statements", "changes", "topology"):
        assert (await fetch(f"{url}/{path}")).status_code == 404


async def test_a_request_that_fails_is_answered(
    url: str, shop: Monitoring, capsys: pytest.CaptureFixture[str]
) -> None:
    shop.failure = RuntimeError("monitoring is broken")
    answer = await fetch(f"{url}/services/orders-api")
    assert answer.status_code == 500
    assert answer.json() == {"error": "internal error: RuntimeError: monitoring is broken"}
    with pytest.raises(TransientError, match="monitoring is broken"):
        await ControlPlane(url).service("orders-api")
    assert "RuntimeError" in capsys.readouterr().err, "the traceback is in the keeper's log"


@pytest.mark.parametrize("method", ["get", "post"])
def test_an_unknown_route_is_answered(url: str, method: str) -> None:
    answer: Any = getattr(httpx, method)(f"{url}/nothing/here")
    assert answer.status_code == 404
