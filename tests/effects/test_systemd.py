"""Restarts of units: a program that does what the manual of systemctl says, and the real one as far as it goes here."""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
import systemctl
from acting import RUN, Acting, calls
from loop_rig import concludes

from opsleuth.state.errors import ConfigError
from opsleuth.state.run_status import ExitCode
from opsleuth.tools.declared.load_declarations import build_declared_tools
from opsleuth.tools.effects.platform import PlatformOperation
from opsleuth.tools.effects.service_changes import build_service_tools
from opsleuth.tools.effects.systemd import SystemdPlatform
from opsleuth.tools.extra_tools import ExtraTools
from opsleuth.tools.spec import NotPermittedError, ToolError

DONE = concludes("nothing more to do")
RESTART = calls(("service_restart", {"service": "orders"}))
UP = {
    "LoadState": "loaded", "ActiveState": "active", "SubState": "running", "InvocationID": "a" * 32,
    "InactiveExitTimestamp": "@1700000000", "InactiveExitTimestampMonotonic": "5000000",
}  # fmt: skip


class Host:
    """One host with the unit orders.service, and a run that may restart it."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, *behave: str) -> None:
        self.file = folder / "units.json"
        self.file.write_text(json.dumps({"units": {"orders.service": UP}, "behave": behave, "asked": []}))
        program = folder / "bin" / "systemctl"
        program.parent.mkdir()
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{systemctl.__file__}" "$@"\n')
        program.chmod(0o755)
        monkeypatch.setenv("UNITS", str(self.file))
        self.platform = SystemdPlatform("web-1", {"orders": "orders.service"}, program=str(program))
        tools = tuple(build_service_tools(self.platform))
        self.rig = Acting(folder, "http://127.0.0.1:9", settles=0.0)
        self.rig.parts = self.rig.replaced(effects=lambda _: (), added=lambda *_: ExtraTools(tools))

    @property
    def restarts(self) -> int:
        return len(json.loads(self.file.read_text())["asked"])

    def run(self) -> Any:
        self.rig.start(RESTART, DONE)
        self.rig.approve_all()
        return self.rig.resume()


def test_a_restart_is_shown_made_once_and_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host = Host(tmp_path, monkeypatch)
    host.rig.start(RESTART, DONE)
    (asked,) = host.rig.pending()
    assert "restart -- orders.service" in json.dumps(asked.document)
    assert host.restarts == 0
    host.rig.approve(asked)
    outcome = host.rig.resume()
    assert host.restarts == 1
    assert outcome.report is not None
    assert outcome.report["effects"][0]["verified"] is True


@pytest.mark.parametrize(
    ("behave", "code", "status"),
    [
        ("lost", ExitCode.INCONCLUSIVE, "done"),
        ("never", ExitCode.EFFECT_UNKNOWN, "unknown"),
        ("denied", ExitCode.INCONCLUSIVE, "failed_clean"),
    ],
)
def test_a_lost_answer_is_told_by_the_time_the_unit_became_active(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, behave: str, code: ExitCode, status: str
) -> None:
    host = Host(tmp_path, monkeypatch, behave)
    outcome = host.run()
    assert host.restarts == 1
    assert outcome.exit_code is code
    assert host.rig.store.effects.list(RUN)[0].status == status


@pytest.mark.slow
def test_a_unit_that_does_not_come_up_is_no_success(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host = Host(tmp_path, monkeypatch, "fails")
    outcome = host.run()
    assert outcome.exit_code == ExitCode(12)
    assert host.restarts == 1


async def test_a_unit_that_was_restarted_meanwhile_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = Host(tmp_path, monkeypatch)
    with pytest.raises(NotPermittedError, match="was restarted since"):
        await host.platform.submit(PlatformOperation("restart", "orders", {}), "k", "b" * 32)
    assert host.restarts == 0


@pytest.mark.skipif(
    shutil.which("systemctl") is None or Path("/run/systemd/system").exists(),
    reason="needs systemctl, and no running systemd",
)
async def test_the_real_program_without_a_running_systemd() -> None:
    with pytest.raises(ToolError, match="systemctl show"):
        await SystemdPlatform("here", {"orders": "orders.service"}).service("orders")


@pytest.mark.parametrize(
    "row", [{"services": {}}, {"services": {"a": "-x.service"}}, {"services": {"a": "a"}}, {"services": {"a": "a.service"}, "host": "x y"}]
)  # fmt: skip
def test_a_mistake_stops_the_start(row: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="systemd web"):
        build_declared_tools({"systemd": {"web": row}})


def test_several_platforms_have_tools_of_their_own() -> None:
    row = {"services": {"a": "a.service"}}
    (one, _) = build_declared_tools({"systemd": {"web-1": row}})
    assert one.name == "service_state"
    names = {tool.name for tool in build_declared_tools({"systemd": {"web-1": row, "web-2": row}})}
    assert names == {
        "service_state_web_1",
        "service_restart_web_1",
        "service_state_web_2",
        "service_restart_web_2",
    }
