"""The files in `deploy/`: systemd takes the units, and what each of them starts is a command that there is."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import servers
import yaml
from click.testing import CliRunner
from stored_runs import REPOSITORY

from opsleuth.cli import cli

DEPLOY = REPOSITORY / "deploy"
UNITS = sorted(path.name for path in DEPLOY.glob("*.service"))


def started() -> Iterator[tuple[str, list[str]]]:
    """Every file with the arguments that it gives to opsleuth."""
    for name in UNITS:
        line = re.findall(r"^ExecStart=\S+/opsleuth (.*)$", (DEPLOY / name).read_text(), re.MULTILINE)[0]
        yield name, shlex.split(line)
    default = re.findall(r"^CMD (\[.*\])$", (DEPLOY / "Containerfile").read_text(), re.MULTILINE)[-1]
    yield "Containerfile", json.loads(default)
    for name, service in yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"].items():
        if "build" in service:
            yield f"compose.yaml: {name}", service["command"]
    for document in yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text()):
        if document["kind"] == "Deployment":
            (container,) = document["spec"]["template"]["spec"]["containers"]
            yield f"kubernetes.yaml: {container['name']}", container["args"]


@pytest.mark.parametrize(("file", "arguments"), list(started()))
def test_what_is_started_is_a_command_with_these_options(file: str, arguments: list[str]) -> None:
    done = CliRunner().invoke(cli, [*arguments, "--help"])
    assert done.exit_code == 0, (file, done.output)
    assert arguments[0] in ("serve", "worker")


@pytest.mark.parametrize("unit", UNITS)
def test_systemd_takes_the_unit(unit: str, tmp_path: Path) -> None:
    servers.need("systemd-analyze")
    file = tmp_path / unit.replace("@.", "@1.")
    file.write_text((DEPLOY / unit).read_text().replace("/opt/opsleuth/bin/opsleuth", sys.executable))
    if "@" in unit:
        shutil.copy(file, tmp_path / unit)
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(file)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
