"""Names of log files that servers make of the date are no services."""

from pathlib import Path

import pytest

from opsleuth.tools.sources.log_formats.names import names_of_file, service_of_file


@pytest.mark.parametrize(
    ("name", "service"),
    [
        ("u_ex261118.log", "iis"),
        ("u_ex26111813.log", "iis"),
        ("u_ex261118_x.log", "iis"),
        ("ex261118.log", "iis"),
        ("postgresql-Wed.log", "postgresql"),
        ("mysqld.Sun.log.gz", "mysqld"),
        ("app.ndjson", "app"),
        ("express.log", "express"),
        ("sunny-Sunday.log", "sunny-Sunday"),
    ],
)
def test_service_of_a_dated_file(name: str, service: str) -> None:
    assert service_of_file(Path(name)) == service


@pytest.mark.parametrize("folder", ["nginx", "apache2", "shop-edge"])
def test_both_logs_of_a_web_server_are_one_service(tmp_path: Path, folder: str) -> None:
    paths = [tmp_path / folder / name for name in ("access.log", "error.log.1", "other.log")]
    paths[0].parent.mkdir()
    for path in paths:
        path.touch()
    assert [names_of_file(path).service for path in paths] == [folder, folder, "other"]


def test_one_log_alone_has_its_own_name(tmp_path: Path) -> None:
    (tmp_path / "access.log").touch()
    assert names_of_file(tmp_path / "access.log").service == "access"
