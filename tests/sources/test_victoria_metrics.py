"""Whatever speaks the API of Prometheus: VictoriaMetrics for real, tenants as Mimir and Thanos tell them apart."""

from pathlib import Path

import pytest
from contract_server import Asked, Reply, contract_server
from live_rig import SPAN, one
from stored_elsewhere import rows, units

from opsleuth.tools.sources.case_source import CaseSource
from opsleuth.tools.spec import NotPermittedError


@pytest.mark.parametrize("path", ["", "/prometheus"])
async def test_the_samples_are_those_of_the_folder(victoria: str, case: Path, path: str) -> None:
    measured = units(rows(case / "metrics.csv"))
    source = one(kind="prometheus", url=victoria + path, step=60, units=measured, headers={"AccountID": "0"})
    found = await source.read(["metrics"], SPAN)
    recorded = CaseSource.open(case).recording(["metrics"])
    key = lambda s: (s.service, s.metric)  # noqa: E731
    assert sorted(found.metrics or (), key=key) == sorted(recorded.metrics or (), key=key)
    await source.discover()
    assert source.services == {s.service for s in recorded.metrics or ()}
    assert source.warnings == ()


async def test_doctor(victoria: str) -> None:
    """Its queries look at half a minute ago: its clock is not behind for that."""
    checks = {c.what: c.state for c in await one(kind="prometheus", url=victoria).check()}
    assert checks == {"version": "ok", "queries": "ok", "clock": "ok", "services": "ok"}


def _of_tenants(asked: Asked) -> Reply:
    """Mimir with multi-tenancy: without the header nobody is known (HTTP API, authentication)."""
    if asked.headers.get("x-scope-orgid") != "shop":
        return Reply("no org id\n", 401)
    return Reply({"status": "success", "data": ["cart"]})


async def test_a_tenant_is_named_by_a_header() -> None:
    with contract_server(_of_tenants) as server:
        await (known := one(kind="prometheus", url=server.url, headers={"X-Scope-OrgID": "shop"})).discover()
        with pytest.raises(NotPermittedError, match="no org id"):
            await one(kind="prometheus", url=server.url).discover()
    assert known.services == {"cart"}


async def test_a_tenant_that_is_a_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENANT", "shop")
    with contract_server(_of_tenants) as server:
        source = one(kind="prometheus", url=server.url, secret_headers={"X-Scope-OrgID": {"env": "TENANT"}})
        await source.discover()
    assert source.services == {"cart"}
