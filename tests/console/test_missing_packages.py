"""A package that an extra brings is named with the line that installs it here, never as an internal error."""

import tomllib

import pytest
from stored_runs import REPOSITORY

from opsleuth.console.error_reporting import report_error
from opsleuth.console.missing_packages import EXTRA_BY_PACKAGE, describe_install, explain_missing_package
from opsleuth.state.run_status import ExitCode


def test_every_extra_that_is_named_exists() -> None:
    declared = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(EXTRA_BY_PACKAGE.values()) <= set(declared)


@pytest.mark.parametrize(
    ("prefix", "folder", "command"),
    [
        ("/home/a/.local/share/pipx/venvs/opsleuth", "", "pipx install --force 'opsleuth[server]'"),
        ("/home/a/.local/share/uv/tools/opsleuth", "", "uv tool install --force 'opsleuth[server]'"),
        ("/opt/env", "", "python3 -m pip install 'opsleuth[server]'"),
        ("/opt/env", "/src/opsleuth", "python3 -m pip install -e '/src/opsleuth[server]'"),
    ],
)
def test_the_line_fits_the_installation(prefix: str, folder: str, command: str) -> None:
    assert describe_install("server", prefix, folder) == command


def test_a_missing_extra_is_a_matter_of_configuration(capsys: pytest.CaptureFixture[str]) -> None:
    missing = ModuleNotFoundError("No module named 'fastapi'", name="fastapi.routing")
    assert report_error(missing) == ExitCode.CONFIG
    said = capsys.readouterr().err
    assert "needs the extra 'server'" in said
    assert "install" in said
    assert "internal error" not in said
    assert explain_missing_package("json") is None
